import { invalidField } from "../errors/error.ts";
import type { Costs, Decision, Key } from "../types.ts";

/** One of the keys of a decision over several. */
export interface HitOf<Limiter, KeyOf = Key> {
  /** The limiter of the key. */
  readonly limiter: Limiter;
  /** The key. */
  readonly key: KeyOf;
  /** How much the hit weighs; 1 by default. */
  readonly cost?: Costs | undefined;
}

/** A decision over several keys. */
export interface AllHits {
  /** Whether all keys may act now. */
  readonly allowed: boolean;
  /** The decision of each key, in their order. No cost was charged unless all are allowed. */
  readonly decisions: readonly Decision[];
}

/**
 * Checks that a limiter is in memory, or that it is elsewhere: each kind has a `hitAll` of its own.
 * @throws TollgateError if it is not.
 */
export function checkLimiter(limiter: unknown, isInMemory: boolean, expected: string): void {
  const { reserve, clean } = (limiter ?? {}) as Readonly<Record<string, unknown>>;
  // Only a limiter in memory has `clean`.
  if (typeof reserve !== "function" || (clean !== undefined) !== isInMemory)
    throw invalidField("invalid_option", "limiter", limiter, expected);
}
