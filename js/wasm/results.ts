import type { Decision } from "../types.ts";
import { isDetached } from "./detached.ts";
import { reasons, status, verdict } from "./generated.ts";
import type { Instance } from "./instance.ts";

const noNames: readonly string[] = Object.freeze([]);

/** The bit that tells an allowed hit from one that is denied without a reason. */
const allowedBit = verdict.allowed << status.verdict;

/** The bits that are alike in all plain results. */
const plainBits = ~(status.moved | allowedBit);

/** Reads decisions from the result buffer, under policies of these names. */
export class Results {
  readonly #names: readonly string[];
  /** The name of the only policy; undefined if there are several. */
  readonly #single: string | undefined;
  /** The same in a list, for `violated`. */
  readonly #alone: readonly string[];

  constructor(names: readonly string[]) {
    this.#names = names;
    this.#single = names.length === 1 ? names[0] : undefined;
    this.#alone = Object.freeze([...names]);
  }

  /** Returns the decision of an operation that returned `code`. */
  decision(instance: Instance, code: number): Decision {
    const single = this.#single;
    if (single === undefined || (code & plainBits) !== status.small) return this.#any(instance, code);
    if (isDetached(instance.integers, instance.exports.memory)) instance.refreshViews();
    const numbers = instance.integers;
    const allowed = (code & allowedBit) !== 0;
    return {
      allowed,
      count: numbers[0] as number,
      limit: numbers[1] as number,
      remaining: numbers[2] as number,
      retryAfter: numbers[3] as number,
      resetAfter: numbers[4] as number,
      moreAfter: numbers[5] as number,
      policy: single,
      violated: allowed ? noNames : this.#alone,
    };
  }

  /** Returns any other decision: with large numbers, under several policies, or a denial with a reason. */
  #any(instance: Instance, code: number): Decision {
    if (isDetached(instance.integers, instance.exports.memory)) instance.refreshViews();
    const { integers, floats } = instance;
    const numbers = (code & status.small) === 0 ? floats : integers;
    const denied = integers[7] as number;
    const said = code >> status.verdict;
    const decision = {
      allowed: said === verdict.allowed,
      count: numbers[0] as number,
      limit: numbers[1] as number,
      remaining: numbers[2] as number,
      retryAfter: numbers[3] as number,
      resetAfter: numbers[4] as number,
      moreAfter: numbers[5] as number,
      policy: this.#names[integers[6] as number] as string,
      violated: this.#names.filter((_, position) => (denied >>> position) & 1),
    };
    return said in reasons ? { ...decision, reason: reasons[said as keyof typeof reasons] } : decision;
  }
}
