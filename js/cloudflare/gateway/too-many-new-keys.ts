import type { Numbers } from "../../wasm/decision-numbers.ts";
import type { LimitCheck } from "./isolate.ts";

/** The denial of a request whose address has brought too many new keys. */
export class TooManyNewKeys extends Error {
  /** The check of the address. */
  readonly check: LimitCheck;
  readonly numbers: Numbers;

  constructor(check: LimitCheck, numbers: Numbers) {
    super("the address has brought too many new keys");
    this.check = check;
    this.numbers = numbers;
  }
}
