import { invalidField } from "../errors/error.ts";
import type { Awaitable } from "../guard/types.ts";
import type { Costs, Decision, Duration, Key, Policies, Policy } from "../types.ts";

/** A reservation, as far as a budget needs it. */
export interface BudgetReservation {
  /** The decision. */
  readonly decision: Decision;
  /** The id, by which it is settled elsewhere; empty if it was denied. */
  readonly id: string;
  /** Closes it and charges what was used; by default all of it. */
  settle(used?: Costs): unknown;
  /** Moves its end to so long from now. */
  extend(ttl: Duration): unknown;
}

/** The part of a limiter that a budget needs: methods of `RateLimiter`, whether they return values or promises. */
export interface BudgetLimiter {
  /** The policies it decides by, if it knows them. */
  readonly policies?: readonly Policy[] | undefined;
  /** Sets a cost aside until it is settled. */
  reserve(
    key: Key,
    cost?: Costs,
    options?: { readonly ttl?: Duration | undefined },
  ): Awaitable<BudgetReservation>;
  /** Adds a cost to the count of a policy, whether it fits or not. */
  inc(key: Key, cost?: number, policy?: string): unknown;
  /** Returns the count of a policy, for soft limits. */
  get?(key: Key, policy?: string): Awaitable<number>;
}

/** The object of one key, as its namespace returns it. */
export interface BudgetObject {
  /** Sets a cost aside until it is settled. */
  reserve(
    policies: Policies,
    cost?: Costs,
    options?: { readonly ttl?: Duration | undefined },
  ): Awaitable<Pick<BudgetReservation, "decision" | "id">>;
  /** Closes a reservation and charges what was used; by default all of it. */
  settle(policies: Policies, id: string, used?: Costs): unknown;
  /** Moves the end of a reservation. */
  extend(policies: Policies, id: string, ttl: Duration): unknown;
  /** Adds a cost to the count of a policy, whether it fits or not. */
  inc(policies: Policies, cost?: number, policy?: string): unknown;
  /** Returns the count of a policy, for soft limits. */
  get?(policies: Policies, policy?: string): Awaitable<number>;
}

/** A Durable Object namespace of `RateLimiterObject`: `env.LIMITERS`. */
export interface BudgetNamespace {
  /** Returns the object of a key. */
  getByName(name: string): BudgetObject;
}

/** Returns a limiter for the option `limiter`; that of a namespace passes the policies with each call. */
export function limiterOf(given: unknown, policy: Policies | undefined): BudgetLimiter {
  const { getByName, reserve } = (given ?? {}) as Partial<BudgetNamespace & BudgetLimiter>;
  if (typeof getByName === "function") {
    if (policy === undefined)
      throw invalidField("invalid_option", "policy", policy, "the policies that the objects decide by");
    return overObjects(given as BudgetNamespace, policy);
  }
  if (typeof reserve === "function") return overStrings(given as BudgetLimiter);
  throw invalidField("invalid_option", "limiter", given, limiterText);
}

const limiterText =
  "a RateLimiter, RedisLimiter, StoreLimiter or RemoteLimiter, or a Durable Object namespace such as env.LIMITERS";

/** Takes keys that are numbers, such as the ids of users. Only a limiter in memory, which has `clean`, does so itself. */
function overStrings(limiter: BudgetLimiter): BudgetLimiter {
  if ("clean" in limiter) return limiter;
  return {
    reserve: (key, cost, options) => limiter.reserve(textOf(key), cost, options),
    inc: (key, cost, policy) => limiter.inc(textOf(key), cost, policy),
    get: async (key, policy) => (await limiter.get?.(textOf(key), policy)) ?? 0,
  };
}

const textOf = (key: Key): Key => (typeof key === "bigint" || Number.isFinite(key) ? String(key) : key);

function overObjects(namespace: BudgetNamespace, policies: Policies): BudgetLimiter {
  const objectOf = (key: Key) => namespace.getByName(String(key));
  return {
    async reserve(key, cost, options) {
      const object = objectOf(key);
      const { decision, id } = await object.reserve(policies, cost, options);
      return {
        decision,
        id,
        settle: (used) => object.settle(policies, id, used),
        extend: (ttl) => object.extend(policies, id, ttl),
      };
    },
    inc: (key, cost, policy) => objectOf(key).inc(policies, cost, policy),
    get: async (key, policy) => (await objectOf(key).get?.(policies, policy)) ?? 0,
  };
}
