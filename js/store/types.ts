import type { OnDecision } from "../events/messages.ts";
import type { FallbackLimiter } from "../limiter/fallback.ts";
import type { Duration } from "../types.ts";

/** A value, or a promise of one. */
export type Awaitable<Value> = Value | PromiseLike<Value>;

/** A place that keeps one text for each key, and replaces it only if it is still the same. */
export interface Store {
  /** Returns the text of a key, exactly as it was stored; `null` or `undefined` if there is none. */
  get(key: string): Awaitable<string | null | undefined>;
  /**
   * In one atomic step: if the text of the key is still `before` (`null`: if there is none), stores `after` (`null`:
   * deletes it) and returns true. Otherwise changes nothing and returns false. They are never both `null`.
   *
   * `ttl` is how long `after` is needed, in milliseconds from now. Afterwards the store may delete it; it need not. It is
   * 0 if `after` is `null`.
   */
  swap(key: string, before: string | null, after: string | null, ttl: number): Awaitable<boolean>;
}

/** The options of a limiter over a store. */
export interface StoreOptions {
  /** Where the states are. The limiter neither opens nor closes it. */
  readonly store: Store;
  /** Milliseconds since the epoch; `Date.now` by default. Read once for each decision. */
  readonly clock?: (() => number) | undefined;
  /** Comes before each key in the store; empty by default. Limiters with the same prefix share keys. */
  readonly prefix?: string | undefined;
  /** How long an operation may take, all its tries together; two seconds by default, at most 30 s. */
  readonly timeout?: Duration | undefined;
  /** How many swaps of an operation may fail because another process was faster; 100 by default. */
  readonly maxTries?: number | undefined;
  /** The result of `hit`, `peek` and `reserve` if the store fails: an error (the default), or a decision with the reason `"error"`. */
  readonly onError?: "throw" | "allow" | "deny" | undefined;
  /** Decides `hit`, `peek` and `reserve` if the store fails, instead of `onError`. */
  readonly fallback?: FallbackLimiter | undefined;
  /** Called with every decision of `hit`, `reserve` and `hitAll`, after it was made. What it throws is only logged. */
  readonly onDecision?: OnDecision | undefined;
}

/** Counters of a limiter since it was created. */
export interface StoreStats {
  /** Operations on keys that were begun. */
  readonly operations: number;
  /** Calls of `get`. */
  readonly gets: number;
  /** Calls of `swap`. */
  readonly swaps: number;
  /** Calls of `swap` that returned false. */
  readonly conflicts: number;
  /** Operations that failed because the store did, or was late, or another process was faster too often. */
  readonly failed: number;
  /** Hits, peeks and reservations among them that `onError` or `fallback` decided. */
  readonly decidedWithout: number;
}
