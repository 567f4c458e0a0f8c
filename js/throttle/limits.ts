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

/** A decision, and when it was made: the store may be slow. */
export interface Timed {
  readonly decision: Decision;
  readonly now: number;
}

/** The result for a key that is paused, whatever its policy allows. */
export interface StoredPause {
  readonly pausedUntil: number;
}

/** A budget outside of the queue, which others use, too. */
export interface Budget {
  /** Decides a hit, for a call that can wait until `deadline`. `isWanted` returns whether it still waits. */
  take(key: Key, cost: Costs, deadline: number, isWanted: () => boolean): Promise<Timed | StoredPause>;
  /** Notes that no call of a key waits here any more. */
  leave(key: Key): void;
  /** Pauses a key until a time. */
  hold(key: Key, until: number, length: number): void;
  /** Notes that no call waits. */
  rest(): void;
  close(): void;
}
