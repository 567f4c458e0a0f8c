import { copiedOptions } from "../checks.ts";
import { isStoreError } from "../errors/store-error.ts";
import type { AsyncPublisher } from "../events/async-publisher.ts";
import { banLength } from "../policy/bans.ts";
import { AsyncReservation, type AsyncSettling } from "../reservation/async-reservation.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  KeyException,
  ReserveOptions,
  Settlement,
} from "../types.ts";
import type { AsyncLimiter } from "./async-limiter.ts";
import type { Deciding } from "./fallback.ts";
import type { Excepting, KeyOperation, ReservationOperation } from "./operation.ts";
import { readReservations } from "./reset-options.ts";
import { ttlOf } from "./ttl.ts";
import type { UndoableHit } from "./undo.ts";

/**
 * A reservation as a limiter made it.
 * @internal
 */
export interface MadeReservation {
  readonly decision: Decision;
  /** Empty if it was denied. */
  readonly id: string;
  /** 0 if it was denied. */
  readonly expiresAt: number;
}

/** The methods of a limiter whose keys are outside the process. Each kind of limiter performs their operations in its own way. */
export abstract class LimiterElsewhere<Reserving extends ReserveOptions = ReserveOptions>
  implements AsyncLimiter
{
  /** @internal */
  readonly publisher: AsyncPublisher;
  readonly #fallback: Deciding;
  readonly #counters: { decidedWithout: number };

  /** @internal */
  constructor(
    publisher: AsyncPublisher,
    fallback: Deciding,
    counters: { decidedWithout: number } = { decidedWithout: 0 },
  ) {
    this.publisher = publisher;
    this.#fallback = fallback;
    this.#counters = counters;
  }

  /**
   * Decides a hit or a peek, also by the fallback. It may be called for every request, and so takes no operation.
   * @internal
   */
  abstract decide(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    policies: Reserving["policies"],
  ): Promise<Decision>;

  /**
   * Performs any other operation on a key.
   * @internal
   */
  abstract perform(key: string, operation: KeyOperation | Excepting): Promise<unknown>;

  /**
   * Performs an operation on a reservation. One that is extended gives its new end.
   * @internal
   */
  abstract close(id: string, operation: ReservationOperation): Promise<Settlement | number>;

  /**
   * Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name.
   * A third argument has other numbers for this call only: the same algorithm and `scale`, another limit, capacity or
   * rate. A `RemoteLimiter` has those of the Worker, and only hits with one number can use a lease.
   */
  hit(key: string, cost: Costs = 1, policies?: Reserving["policies"]): Promise<Decision> {
    if (!this.publisher.isHeard) return this.decide("hit", key, cost, policies);
    const decide = () => this.decide("hit", key, cost, policies);
    return this.publisher.awaited("hit", key, cost, decide, (decision) => decision);
  }

  /**
   * Decides a hit of a decision over several keys.
   * @internal
   */
  async hitUndoable(key: string, cost: Costs = 1, policies?: Reserving["policies"]): Promise<UndoableHit> {
    try {
      return (await this.perform(key, { name: "hit", cost, policies })) as UndoableHit;
    } catch (error) {
      const reservation = await this.#reserveWithout(key, cost, undefined, error);
      const { decision } = reservation;
      return { decision, undo: () => reservation.cancel(), keep: () => reservation.settle() };
    }
  }

  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
  peek(key: string, cost: Costs = 1, policies?: Reserving["policies"]): Promise<Decision> {
    return this.decide("peek", key, cost, policies);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. The default `ttl` is that of a concurrency policy, or one minute. A key has at most
   * 1,024 open reservations.
   *
   * @example
   * ```ts
   * import { StoreLimiter } from "tollgate/store";
   * import { memoryStore } from "tollgate/testing";
   *
   * const policies = [
   *   { algorithm: "concurrency", limit: 5, name: "running" },
   *   { algorithm: "fix_window", limit: 90_000, scale: "1m", name: "tpm" },
   * ] as const;
   * const limiter = new StoreLimiter(policies, { store: memoryStore() });
   * const reservation = await limiter.reserve("user:42", { tpm: 4000 }, { ttl: "2m" });
   * if (reservation.allowed) await reservation.settle({ tpm: 1234 });
   * ```
   */
  reserve(key: string, cost: Costs = 1, options: Reserving = {} as Reserving): Promise<AsyncReservation> {
    const reserve = () => this.#reserve(key, cost, options);
    if (!this.publisher.isHeard) return reserve();
    return this.publisher.awaited("reserve", key, cost, reserve, ({ decision }) => decision);
  }

  async #reserve(key: string, cost: Costs, options: Reserving): Promise<AsyncReservation> {
    const { ttl: given, policies } = copiedOptions(options, ["ttl", "policies"]);
    const ttl = given === undefined ? undefined : ttlOf(given);
    try {
      const made = await this.perform(key, { name: "reserve", cost, ttl, policies });
      const { decision, id, expiresAt } = made as MadeReservation;
      return new AsyncReservation(this.#settling, key, decision, id, expiresAt);
    } catch (error) {
      return this.#reserveWithout(key, cost, ttl, error);
    }
  }

  /**
   * Closes a reservation by its id and charges the used amount, by default all of it. Returns `"settled"`, `"expired"`
   * (it had been charged in full) or `"closed"` (it had been settled).
   */
  async settle(id: string, used?: Costs): Promise<Settlement> {
    return (await this.close(id, { name: "settle", used })) as Settlement;
  }

  /** Closes a reservation by its id without a charge. */
  cancel(id: string): Promise<Settlement> {
    return this.settle(id, 0);
  }

  /** Moves the end of a reservation, by its id, to `ttl` from now. */
  async extend(id: string, ttl: Duration): Promise<Extension> {
    const extended = await this.#extendUntil(id, ttl);
    return typeof extended === "number" ? "extended" : extended;
  }

  /**
   * Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. With several
   * policies, `policy` is the name of the one to charge.
   */
  inc(key: string, cost = 1, policy?: string): Promise<number> {
    return this.#perform(key, { name: "inc", cost, of: policy });
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(key: string, count: number, policy?: string): Promise<number> {
    return this.#perform(key, { name: "set", count, of: policy });
  }

  /** Returns the key's count. */
  get(key: string, policy?: string): Promise<number> {
    return this.#perform(key, { name: "get", of: policy });
  }

  /** Returns when the key's state ends, in milliseconds since the epoch by the store's clock; 0 if it has none. */
  expiresAt(key: string, policy?: string): Promise<number> {
    return this.#perform(key, { name: "expires_at", of: policy });
  }

  /**
   * Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end, in milliseconds
   * since the epoch by the store's clock. Among several bans, `policy` is the name of one.
   */
  async ban(key: string, length: Duration, policy?: string): Promise<number> {
    return this.#perform(key, { name: "ban", for: banLength(length), of: policy });
  }

  /** Lifts the ban of a key and forgets its past ones. Returns true if one held. */
  unban(key: string, policy?: string): Promise<boolean> {
    return this.#perform(key, { name: "unban", of: policy });
  }

  /**
   * Gives the key other numbers until a time, or allows or denies everything; `null` lifts that. It replaces the exception
   * that the key has, for the whole fleet. Returns its end, in milliseconds since the epoch by the store's clock; with
   * `null`, when it would have ended, or 0 if there was none.
   *
   * @example
   * ```ts
   * import { RemoteLimiter } from "tollgate/client";
   *
   * const [url, token] = ["https://limits.example.com/_tollgate", process.env.TOLLGATE_TOKEN ?? ""];
   * const limiter = new RemoteLimiter({ url, token, policy: "api" });
   * await limiter.except("customer:42", { api: { limit: 1_000 } }, { for: "7d" });
   * ```
   */
  except(key: string, exception: Exception, end: ExceptionEnd): Promise<number>;
  except(key: string, exception: null): Promise<number>;
  except(key: string, exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    return this.#perform(key, { name: "except", exception, end });
  }

  /** Returns the exception of a key that is in force; `null` if it has none. */
  exceptions(key: string): Promise<KeyException | null> {
    return this.#perform(key, { name: "exceptions" });
  }

  /**
   * Removes the key's states, and returns true if there were any. Reservations stay open, unless `reservations` is true.
   * An exception stays.
   */
  async reset(key: string, options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    return this.#perform(key, { name: "reset", reservations: readReservations(options) });
  }

  /**
   * Returns whether the fallback decides after an error.
   * @internal
   */
  isFailure(error: unknown): boolean {
    return isStoreError(error);
  }

  /**
   * Returns the decision of the fallback for a hit or a peek that failed, or throws the error.
   * @internal
   */
  decideWithout(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    error: unknown,
  ): Decision | Promise<Decision> {
    const decided = this.isFailure(error) ? this.#fallback.decide(kind, key, cost) : undefined;
    if (decided === undefined) throw error;
    return decided instanceof Promise
      ? decided.then((decision) => this.#decidedWithout(decision, error))
      : this.#decidedWithout(decided, error);
  }

  /** Returns a reservation of the fallback; one that needs no settlement if the fallback has none. Or throws the error. */
  async #reserveWithout(
    key: string,
    cost: Costs,
    ttl: number | undefined,
    error: unknown,
  ): Promise<AsyncReservation> {
    const reserved = this.isFailure(error) ? await this.#fallback.reserve?.(key, cost, ttl) : undefined;
    if (reserved === undefined) {
      const decision = await this.decideWithout("hit", key, cost, error);
      return new AsyncReservation(this.#settling, key, decision, "", 0);
    }
    this.#decidedWithout(reserved.decision, error);
    return reserved;
  }

  #decidedWithout(decision: Decision, error: unknown): Decision {
    this.#counters.decidedWithout++;
    return this.publisher.without(decision, error);
  }

  async #perform<Result>(key: string, operation: KeyOperation | Excepting): Promise<Result> {
    return (await this.perform(key, operation)) as Result;
  }

  /** Moves the end of a reservation, and returns it. */
  async #extendUntil(id: string, ttl: Duration): Promise<Exclude<Settlement, "settled"> | number> {
    return (await this.close(id, { name: "extend", ttl: ttlOf(ttl) })) as "expired" | "closed" | number;
  }

  /** The methods for reservations. */
  readonly #settling: AsyncSettling = {
    settle: (id, used) => this.settle(id, used),
    extendUntil: (id, ttl) => this.#extendUntil(id, ttl),
  };
}
