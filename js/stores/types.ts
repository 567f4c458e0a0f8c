import type { Decision, Policies, Policy, WindowPolicy } from "../types.ts";

/** A value, or a promise of one. */
export type Awaitable<Value> = Value | PromiseLike<Value>;

/** What a store asks of a limiter: methods of `RateLimiter`, whether they return values or promises. */
export interface StoreLimiter {
  /** The policies it decides by, where it knows them. */
  readonly policies?: readonly Policy[] | undefined;
  /** Decides whether the key may act now, and takes `cost` if so. */
  hit(key: string, cost?: number): Awaitable<Decision>;
  /** Returns the decision of a hit, and changes nothing. */
  peek(key: string, cost?: number): Awaitable<Decision>;
  /** Adds to the count without asking; a negative cost gives back. */
  inc(key: string, cost?: number): Awaitable<unknown>;
  /** Makes the key as if `count` had just been used. */
  set(key: string, count: number): Awaitable<unknown>;
  /** Forgets the key. */
  reset(key: string): Awaitable<unknown>;
}

/** The object of one key, as its namespace returns it. */
export interface StoreObject {
  /** Decides whether the key may act now, and takes `cost` if so. */
  hit(policies: Policies, cost?: number): Awaitable<Decision>;
  /** Returns the decision of a hit, and changes nothing. */
  peek(policies: Policies, cost?: number): Awaitable<Decision>;
  /** Adds to the count without asking. */
  inc(policies: Policies, cost?: number): Awaitable<unknown>;
  /** Makes the key as if `count` had just been used. */
  set(policies: Policies, count: number): Awaitable<unknown>;
  /** Forgets the key. */
  reset(policies: Policies): Awaitable<unknown>;
}

/** A Durable Object namespace of `RateLimiterObject`: `env.LIMITERS`. */
export interface StoreNamespace {
  /** Returns the object of a key. */
  getByName(name: string): StoreObject;
}

/** Makes the limiter of a policy, or has one for any policy: a Durable Object namespace. */
export type LimiterSource = ((policy: Policy) => StoreLimiter) | StoreNamespace;

/** The algorithms whose numbers are a limit and a window, as those rate limiters have them. */
export type WindowAlgorithm = WindowPolicy["algorithm"];
