import { type Policy, TollgateError } from "../index.ts";
import { full, limiterAt } from "./candidate.ts";
import { Column } from "./column.ts";
import type { Entries } from "./entries.ts";
import { otherShares, type Suggesting, type Suggestion, spared } from "./suggest.ts";

/**
 * Finds the smallest rate of a bucket for its capacity. Each rate is tried by the core on all lines, which are kept for
 * it: 24 bytes a line. A key that is never denied at a rate is never denied at a higher one, so few rates are tried.
 */
export class RateMeasure implements Suggesting {
  readonly field: string;
  readonly #policy: Policy;
  readonly #times = new Column();
  readonly #keys = new Column();
  readonly #costs = new Column();
  #length = 0;
  #known = 0;
  /** How many keys are denied at some time, by the rates that were tried. */
  readonly #deniedAt = new Map<number, number>();

  constructor(policy: Policy, field: string) {
    this.field = field;
    this.#policy = policy;
    // An invalid capacity is an error before a long log is read.
    limiterAt(this.#with(1), () => 0);
  }

  replay({ times, keys, costs }: Entries, from: number, to: number): void {
    for (let at = from; at < to; at += 1) {
      const key = keys[at] as number;
      if (key < 0) continue;
      this.#times.add(this.#length, times[at] as number);
      this.#keys.add(this.#length, key);
      this.#costs.add(this.#length, costs[at] as number);
      this.#length += 1;
      this.#known = Math.max(this.#known, key + 1);
    }
  }

  suggestion(percent: number): Suggestion {
    const limit = this.#smallest(percent);
    return {
      policy: this.#with(limit),
      field: this.field,
      limit,
      percent,
      keys: this.#known,
      keysDenied: Number.isFinite(limit) ? this.#denied(limit) : this.#denied(this.#highest()),
      others: otherShares.map((percent) => ({ percent, limit: this.#smallest(percent) })),
    };
  }

  #with(rate: number): Policy {
    return { ...this.#policy, [this.field]: rate } as Policy;
  }

  /** Returns the smallest rate at which so many keys are never denied; `Infinity` if none is enough. */
  #smallest(percent: number): number {
    const enough = (rate: number) => this.#known - this.#denied(rate) >= spared(this.#known, percent);
    let [low, high] = [0, 1];
    const highest = this.#highest();
    while (!enough(high)) {
      if (high === highest) return Number.POSITIVE_INFINITY;
      low = high;
      high = Math.min(2 * high, highest);
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (enough(middle)) high = middle;
      else low = middle;
    }
    return high;
  }

  #max: number | undefined;

  /** Returns a rate that is as good as any other: the highest power of two that the core accepts for the policy. */
  #highest(): number {
    for (let rate = 2 ** 40; this.#max === undefined; rate /= 2) {
      try {
        limiterAt(this.#with(rate), () => 0);
        this.#max = rate;
      } catch (error) {
        if (!(error instanceof TollgateError) || rate <= 1) throw error;
      }
    }
    return this.#max;
  }

  /** Replays all lines at a rate, and returns how many keys are denied at some time. */
  #denied(rate: number): number {
    const known = this.#deniedAt.get(rate);
    if (known !== undefined) return known;
    let now = 0;
    const limiter = limiterAt(this.#with(rate), () => now);
    const denied = new Uint8Array(this.#known);
    let count = 0;
    for (let at = 0; at < this.#length; at += 1) {
      const key = this.#keys.get(at);
      // The rest of such a key changes nothing.
      if (denied[key] === 1) continue;
      now = this.#times.get(at);
      const { allowed, reason } = limiter.hit(key, this.#costs.get(at));
      if (reason !== undefined) throw full();
      if (allowed) continue;
      denied[key] = 1;
      count += 1;
    }
    limiter[Symbol.dispose]();
    this.#deniedAt.set(rate, count);
    return count;
  }
}
