import { AsyncReservation, type AsyncSettling } from "../async-reservation.ts";
import { TollgateError } from "../error.ts";
import { RateLimiter } from "../limiter.ts";
import type { Costs, Decision, Policy } from "../types.ts";
import type { ReadRedisOptions } from "./options.ts";
import { shared } from "./replicas.ts";
import type { FallbackLimiter, FallbackReservation } from "./types.ts";

/** Decides hits and peeks that Redis did not answer. */
export class Without {
  readonly #onError: "throw" | "allow" | "deny";
  readonly #fallback: FallbackLimiter | undefined;
  readonly #limits: readonly [limit: number, policy: string];

  constructor(options: ReadRedisOptions, policies: readonly Policy[], names: readonly string[]) {
    const { onError, fallback } = options;
    this.#onError = onError;
    this.#fallback = typeof fallback === "number" ? new RateLimiter(shared(policies, fallback)) : fallback;
    const [first] = policies as [Policy, ...Policy[]];
    this.#limits = ["limit" in first ? first.limit : first.capacity, names[0] as string];
  }

  /** Returns the decision of a hit, or with `peek` of one that is only asked about; `undefined` if the error is thrown. */
  decide(kind: "hit" | "peek", key: string, cost: Costs): Decision | Promise<Decision> | undefined {
    if (this.#fallback !== undefined) return this.#fallback[kind](key, cost);
    return this.#onError === "throw" ? undefined : this.#unlimited();
  }

  /** Returns a reservation by the fallback, or one of nothing; `undefined` if the error is thrown. */
  async reserve(key: string, cost: Costs, ttl: number): Promise<AsyncReservation | undefined> {
    if (this.#fallback?.reserve === undefined) {
      const decision = await this.decide("hit", key, cost);
      return decision && new AsyncReservation(settlingBy(undefined), key, decision, "", 0);
    }
    const reservation = await this.#fallback.reserve(key, cost, { ttl });
    const { decision, id, expiresAt } = reservation;
    return new AsyncReservation(settlingBy(reservation), key, decision, id, expiresAt);
  }

  #unlimited(): Decision {
    const [limit, policy] = this.#limits;
    const allowed = this.#onError === "allow";
    const zero = { count: 0, limit, remaining: 0, retryAfter: 0, resetAfter: 0 };
    return { allowed, ...zero, policy, violated: [], reason: "error" };
  }
}

/** Settles a reservation of the fallback's. */
const settlingBy = (reservation: FallbackReservation | undefined): AsyncSettling => ({
  settle: async (_id, used) => reservation?.settle(used) ?? "closed",
  extendUntil: async (_id, ttl) => {
    const word = (await reservation?.extend(ttl)) ?? "closed";
    return word === "extended" ? (reservation?.expiresAt ?? 0) : word;
  },
  settleLater: () => void reservation?.settle(),
});

/** The errors that Redis or its value are to blame for. Any other is the caller's. */
const ofRedis: readonly string[] = [
  "unanswered",
  "invalid_state",
  "unsupported_version",
  "out_of_memory",
  "state_lost",
];

/** Returns true for an error that `onError` and `fallback` are for. */
export const isOfRedis = (error: unknown): boolean =>
  error instanceof TollgateError ? ofRedis.includes(error.code) : true;
