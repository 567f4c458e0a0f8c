import type { Costs, Decision, Key } from "./types.ts";

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
