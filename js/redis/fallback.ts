import { errorDecision } from "../errors/error-decision.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import { AsyncReservation, type AsyncSettling } from "../reservation/async-reservation.ts";
import type { Costs, Decision, Policy } from "../types.ts";
import type { ReadRedisOptions } from "./options.ts";
import { sharedPolicies } from "./replicas.ts";
import type { FallbackLimiter, FallbackReservation } from "./types.ts";

/** Decides by `fallback` or `onError` while Redis does not respond. */
export class Fallback {
  readonly #onError: "throw" | "allow" | "deny";
  readonly #limiter: FallbackLimiter | undefined;
  /** The limit and the name of the first policy, for decisions by `onError`. */
  readonly #first: readonly [limit: number, policy: string];

  constructor(options: ReadRedisOptions, policies: readonly Policy[], names: readonly string[]) {
    const { onError, fallback } = options;
    this.#onError = onError;
    this.#limiter =
      typeof fallback === "number" ? new RateLimiter(sharedPolicies(policies, fallback)) : fallback;
    const [first] = policies as [Policy, ...Policy[]];
    this.#first = ["limit" in first ? first.limit : first.capacity, names[0] as string];
  }

  /** Returns the decision of a hit or a peek; `undefined` if the error is to be thrown. */
  decide(kind: "hit" | "peek", key: string, cost: Costs): Decision | Promise<Decision> | undefined {
    if (this.#limiter !== undefined) return this.#limiter[kind](key, cost);
    return this.#onError === "throw" ? undefined : this.#decisionByOnError();
  }

  /**
   * Returns a reservation of the fallback; without a fallback, one that needs no settlement. `undefined` if the error is to
   * be thrown.
   */
  async reserve(key: string, cost: Costs, ttl: number): Promise<AsyncReservation | undefined> {
    if (this.#limiter?.reserve === undefined) {
      const decision = await this.decide("hit", key, cost);
      return decision && new AsyncReservation(settlingBy(undefined), key, decision, "", 0);
    }
    const reservation = await this.#limiter.reserve(key, cost, { ttl });
    const { decision, id, expiresAt } = reservation;
    return new AsyncReservation(settlingBy(reservation), key, decision, id, expiresAt);
  }

  #decisionByOnError(): Decision {
    const [limit, policy] = this.#first;
    return errorDecision(this.#onError === "allow", limit, policy);
  }
}

/** Returns the methods that settle a reservation of the fallback. */
const settlingBy = (reservation: FallbackReservation | undefined): AsyncSettling => ({
  settle: async (_id, used) => reservation?.settle(used) ?? "closed",
  extendUntil: async (_id, ttl) => {
    const extension = (await reservation?.extend(ttl)) ?? "closed";
    return extension === "extended" ? (reservation?.expiresAt ?? 0) : extension;
  },
  settleLater: () => void reservation?.settle(),
});
