import type { Decision } from "../types.ts";
import { buffer, rust } from "./wasm.ts";

/** Bits of a status; `src/js/area.rs` knows the same. */
const allowedBit = 1;
const smallBit = 2;
export const freedBit = 4;
export const takenBit = 8;
const noRoomBit = 16;

const nobody: readonly string[] = Object.freeze([]);

/** Where Rust puts its answers. The views are made anew when the memory has grown under them. */
export class Area {
  readonly #at = rust().area();
  readonly #names: readonly string[];
  readonly #single: string | undefined;
  readonly #alone: readonly string[];
  #integers = new Int32Array();
  #floats = new Float64Array();

  constructor(names: readonly string[]) {
    this.#names = names;
    this.#single = names.length === 1 ? names[0] : undefined;
    this.#alone = Object.freeze([...names]);
  }

  /** The decision of an operation that answered `status`. */
  decision(status: number): Decision {
    const single = this.#single;
    if (single === undefined || (status & (smallBit | noRoomBit)) !== smallBit) return this.#slowly(status);
    const numbers = this.#integers.length === 0 ? this.#look() : this.#integers;
    const allowed = (status & allowedBit) !== 0;
    return {
      allowed,
      count: numbers[0] as number,
      limit: numbers[1] as number,
      remaining: numbers[2] as number,
      retryAfter: numbers[3] as number,
      resetAfter: numbers[4] as number,
      policy: single,
      violated: allowed ? nobody : this.#alone,
    };
  }

  /** The single number of an operation. */
  number(): number {
    if (this.#floats.length === 0) this.#look();
    return this.#floats[0] as number;
  }

  /** The slot that was taken for the key. */
  slot(): number {
    return (this.#integers.length === 0 ? this.#look() : this.#integers)[7] as number;
  }

  /** Large numbers, several policies, or no room. */
  #slowly(status: number): Decision {
    const integers = this.#look();
    const numbers = (status & smallBit) === 0 ? this.#floats : integers;
    const denied = integers[6] as number;
    const decision = {
      allowed: (status & allowedBit) !== 0,
      count: numbers[0] as number,
      limit: numbers[1] as number,
      remaining: numbers[2] as number,
      retryAfter: numbers[3] as number,
      resetAfter: numbers[4] as number,
      policy: this.#names[integers[5] as number] as string,
      violated: this.#names.filter((_, position) => (denied >>> position) & 1),
    };
    return (status & noRoomBit) === 0 ? decision : { ...decision, reason: "full" };
  }

  #look(): Int32Array {
    const memory = buffer();
    this.#floats = new Float64Array(memory, this.#at, 5);
    this.#integers = new Int32Array(memory, this.#at + 40, 8);
    return this.#integers;
  }
}
