import type { Costs, Decision, Key } from "../types.ts";

/** Decides hits. */
export interface Hits {
  hit(key: Key, cost: Costs): Decision;
  peek(key: Key, cost: Costs): Decision;
  [Symbol.dispose](): void;
}

/** The part of a limiter that a queue uses. */
export interface Limits extends Hits {
  /** Resolves when hits can be decided; undefined if they can be. */
  readonly loading?: Promise<unknown> | undefined;
  /** Returns a copy of the state of a key, under a clock that runs ahead; undefined if no wait can be computed. */
  ahead(key: Key, clock: () => number): Hits | undefined;
}
