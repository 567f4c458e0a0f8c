import type { Decision, Policies, Policy, WindowPolicy } from "../types.ts";

/** A value, or a promise of one. */
export type Awaitable<Value> = Value | PromiseLike<Value>;

/** The part of a limiter that a store needs: methods of `RateLimiter`, whether they return values or promises. */
export interface HitLimiter {
  /** The policies it decides by, if it knows them. */
  readonly policies?: readonly Policy[] | undefined;
  /** Decides whether the key may act now, and charges `cost` if so. */
  hit(key: string, cost?: number): Awaitable<Decision>;
  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
  peek(key: string, cost?: number): Awaitable<Decision>;
  /** Adds to the count, whether it fits or not; a negative cost gives back. */
  inc(key: string, cost?: number): Awaitable<unknown>;
  /** Sets the count. */
  set(key: string, count: number): Awaitable<unknown>;
  /** Removes the key's states. */
  reset(key: string): Awaitable<unknown>;
}

/** The object of one key, as its namespace returns it. */
export interface StoreObject {
  /** Decides whether the key may act now, and charges `cost` if so. */
  hit(policies: Policies, cost?: number): Awaitable<Decision>;
  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
  peek(policies: Policies, cost?: number): Awaitable<Decision>;
  /** Adds to the count, whether it fits or not; a negative cost gives back. */
  inc(policies: Policies, cost?: number): Awaitable<unknown>;
  /** Sets the count. */
  set(policies: Policies, count: number): Awaitable<unknown>;
  /** Removes the key's states. */
  reset(policies: Policies): Awaitable<unknown>;
}

/** A Durable Object namespace of `RateLimiterObject`: `env.LIMITERS`. */
export interface StoreNamespace {
  /** Returns the object of a key. */
  getByName(name: string): StoreObject;
}

/** A function that returns the limiter of a policy, or a Durable Object namespace. */
export type LimiterSource = ((policy: Policy) => HitLimiter) | StoreNamespace;

/** The algorithms whose numbers are a limit and a window. */
export type WindowAlgorithm = WindowPolicy["algorithm"];
