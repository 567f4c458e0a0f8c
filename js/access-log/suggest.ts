import { type Policy, type RateLimiter, TollgateError } from "../index.ts";
import { algorithms } from "../wasm/generated.ts";
import { full, limiterAt } from "./candidate.ts";
import { Column } from "./column.ts";
import type { Entries } from "./entries.ts";

/** A limit that no log reaches, unless the policy's rate requires a lower one. */
const unreached = 2 ** 40;

/** Shares of the keys that are shown beside the requested one, in percent. */
const otherShares = [50, 90, 99, 99.9, 100];

/** A limit under which a share of the keys is never denied. */
export interface SparingLimit {
  readonly percent: number;
  readonly limit: number;
}

/** A limit for a policy. */
export interface Suggestion {
  readonly policy: Policy;
  /** The field of the policy: `limit` or `capacity`. */
  readonly field: string;
  /** The smallest limit under which that share of the keys is never denied. */
  readonly limit: number;
  /** The requested share of keys that is never denied, in percent. */
  readonly percent: number;
  readonly keys: number;
  /** How many keys are denied at some time under that limit. */
  readonly keysDenied: number;
  /** The smallest limits for other shares. */
  readonly others: readonly SparingLimit[];
}

/**
 * Measures the limit that each key needs so as never to be denied: the most that it uses of a limit that is never
 * reached. Without denials, a key's state does not depend on the limit.
 */
export class Measure {
  readonly field: string;
  readonly #policy: Policy;
  readonly #limiter: RateLimiter;
  readonly #needed = new Column();
  #keys = 0;
  #now = 0;

  constructor(policy: Policy) {
    const fields: Readonly<Record<string, { role: string }>> = algorithms[policy.algorithm]?.fields ?? {};
    this.field = Object.keys(fields).find((name) => fields[name]?.role === "limit") ?? "limit";
    this.#policy = policy;
    this.#limiter = this.#unlimited(unreached);
  }

  replay({ times, keys, costs }: Entries, from: number, to: number): void {
    for (let at = from; at < to; at += 1) {
      const key = keys[at] as number;
      if (key < 0) continue;
      this.#now = times[at] as number;
      const { allowed, limit, remaining, reason } = this.#limiter.hit(key, costs[at]);
      if (reason === "full") throw full();
      this.#needed.raise(key, allowed ? limit - remaining : Number.POSITIVE_INFINITY);
      this.#keys = Math.max(this.#keys, key + 1);
    }
  }

  /** Returns the smallest limit under which `percent` of the keys are never denied. */
  suggestion(percent: number): Suggestion {
    const needed: number[] = [];
    for (let key = 0; key < this.#keys; key += 1) needed.push(this.#needed.get(key));
    needed.sort((one, other) => one - other);
    const limit = sparing(needed, percent);
    return {
      policy: { ...this.#policy, [this.field]: limit } as Policy,
      field: this.field,
      limit,
      percent,
      keys: needed.length,
      keysDenied: needed.filter((need) => need > limit).length,
      others: otherShares.map((percent) => ({ percent, limit: sparing(needed, percent) })),
    };
  }

  /** Returns a limiter with a limit that is not reached; halved until it is valid, since a rate bounds the capacity. */
  #unlimited(limit: number): RateLimiter {
    try {
      return limiterAt({ ...this.#policy, [this.field]: limit } as Policy, () => this.#now);
    } catch (error) {
      const isTooHigh = error instanceof TollgateError && error.message.startsWith(`${this.field}:`);
      if (!isTooHigh || limit <= 1) throw error;
      return this.#unlimited(limit / 2);
    }
  }
}

/** Returns the smallest limit that is enough for `percent` of the keys; `needed` is in order. */
function sparing(needed: readonly number[], percent: number): number {
  // A little less than the product, which may be just above an integer by a rounding error.
  const spared = Math.ceil((needed.length * percent) / 100 - 1e-9);
  return Math.max(1, needed[spared - 1] ?? 1);
}
