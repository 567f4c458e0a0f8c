import { errorDecision } from "../errors/error-decision.ts";
import { unpublished } from "../events/caller.ts";
import { AsyncReservation, type AsyncSettling } from "../reservation/async-reservation.ts";
import type { Costs, Decision, Duration, Extension, Policy, Settlement } from "../types.ts";

/** A limiter that decides while the store does not respond: `RateLimiter`, or anything with its `hit` and `peek`. */
export interface FallbackLimiter {
  /** Decides a hit. */
  hit(key: string, cost?: Costs): Decision | Promise<Decision>;
  /** Returns what a hit would return. Changes no state. */
  peek(key: string, cost?: Costs): Decision | Promise<Decision>;
  /** Reserves a cost. Without this method a reservation is decided as a hit. */
  reserve?(
    key: string,
    cost?: Costs,
    options?: { readonly ttl?: Duration | undefined },
  ): FallbackReservation | Promise<FallbackReservation>;
}

/** A reservation of a fallback limiter. */
export interface FallbackReservation {
  /** The decision. */
  readonly decision: Decision;
  /** The id; empty if it was denied. */
  readonly id: string;
  /** When it ends, in milliseconds since the epoch; 0 if it was denied. */
  readonly expiresAt: number;
  /** Closes it and charges the used amount. */
  settle(used?: Costs): Settlement | Promise<Settlement>;
  /** Moves its end. */
  extend(ttl: Duration): Extension | Promise<Extension>;
}

/** The accepted values of the option `onError`. */
export const onErrorValues = ["throw", "allow", "deny"] as const;

/** The behaviour of a limiter while its store does not respond. */
export type OnError = (typeof onErrorValues)[number];

/** What decides while a store does not respond. */
export interface Deciding {
  /** Returns the decision of a hit or a peek; `undefined` if the error is to be thrown. */
  decide(kind: "hit" | "peek", key: string, cost: Costs): Decision | Promise<Decision> | undefined;
  /** Returns a reservation; `undefined` if it is to be decided as a hit. */
  reserve?(key: string, cost: Costs, ttl: number | undefined): Promise<AsyncReservation | undefined>;
}

/** Decides by `fallback` or `onError`. */
export class Fallback implements Deciding {
  readonly #onError: OnError;
  readonly #limiter: FallbackLimiter | undefined;
  /** The limit and the name of the first policy, for decisions by `onError`. */
  readonly #first: readonly [limit: number, policy: string];

  constructor(
    onError: OnError,
    limiter: FallbackLimiter | undefined,
    { policies, names }: { readonly policies: readonly Policy[]; readonly names: readonly string[] },
  ) {
    this.#onError = onError;
    this.#limiter = limiter;
    // A ban has no limit.
    const position = Math.max(
      0,
      policies.findIndex(({ algorithm }) => algorithm !== "ban"),
    );
    this.#first = [limitOf(policies[position] as Policy), names[position] as string];
  }

  /** Returns the decision of a hit or a peek; `undefined` if the error is to be thrown. */
  decide(kind: "hit" | "peek", key: string, cost: Costs): Decision | Promise<Decision> | undefined {
    const limiter = this.#limiter;
    if (limiter !== undefined) return unpublished(() => limiter[kind](key, cost));
    return this.#onError === "throw" ? undefined : this.#decisionByOnError();
  }

  /** Returns a reservation of the fallback; `undefined` if that has none. */
  async reserve(key: string, cost: Costs, ttl: number | undefined): Promise<AsyncReservation | undefined> {
    const limiter = this.#limiter as Partial<FallbackLimiter> | undefined;
    const reservation = await unpublished(() => limiter?.reserve?.(key, cost, { ttl }));
    if (reservation === undefined) return undefined;
    const { decision, id, expiresAt } = reservation;
    return new AsyncReservation(settlingBy(reservation), key, decision, id, expiresAt);
  }

  #decisionByOnError(): Decision {
    return errorDecision(this.#onError === "allow", ...this.#first);
  }
}

/** Returns the limit or the capacity of a policy. */
function limitOf(policy: Policy): number {
  if (policy.algorithm === "ban") return Number.MAX_SAFE_INTEGER;
  return "limit" in policy ? policy.limit : policy.capacity;
}

/** Returns the methods that settle a reservation of the fallback. */
const settlingBy = (reservation: FallbackReservation): AsyncSettling => ({
  settle: async (_id, used) => reservation.settle(used),
  extendUntil: async (_id, ttl) => {
    const extension = await reservation.extend(ttl);
    return extension === "extended" ? reservation.expiresAt : extension;
  },
});
