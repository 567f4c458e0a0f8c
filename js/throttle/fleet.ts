import { invalidField, TollgateError } from "../errors/error.ts";
import { errorDecision } from "../errors/error-decision.ts";
import { isStoreError } from "../errors/store-error.ts";
import { unpublished } from "../events/caller.ts";
import { muted } from "../events/publisher.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { AsyncReservation } from "../reservation/async-reservation.ts";
import type { Costs, Decision, Duration, Key, Policy } from "../types.ts";
import type { ThrottleOptions } from "./basic-throttle.ts";
import type { Budget, Hits, Limits, Timed } from "./limits.ts";

/** The part of an asynchronous limiter that a throttle uses. */
export interface FleetLimiter {
  /** The policies it decides by, if it knows them. */
  readonly policies?: readonly Policy[] | undefined;
  /** Decides whether the key may act now, and charges `cost` if so. */
  hit(key: string, cost?: Costs): PromiseLike<Decision>;
  /** Decides as a hit does and, if allowed, sets the cost aside. */
  reserve?(
    key: string,
    cost?: Costs,
    options?: { readonly ttl?: Duration | undefined },
  ): PromiseLike<AsyncReservation>;
}

/** The options of a throttle over an asynchronous limiter. */
export interface FleetOptions extends Omit<ThrottleOptions, "shared" | "learn"> {
  /** A limiter whose keys are outside the process: all processes that use it wait for one budget. */
  readonly limiter: FleetLimiter;
  /**
   * What happens to a call while the limiter's store does not respond: it is rejected with the error (`"throw"`, the
   * default), or asks again each second, for as long as it may wait.
   */
  readonly onError?: "throw" | "wait" | undefined;
}

/** A budget that a limiter outside the process decides, for all processes that use it. */
export class Fleet implements Budget {
  readonly #limiter: FleetLimiter;
  readonly #clock: () => number;
  /** The last decision about each key for which calls wait. */
  readonly #decided = new Map<Key, Timed & { readonly cost: Costs }>();

  /** Whether calls wait through an outage of the limiter's store. */
  readonly #waits: boolean;
  #isClosed = false;

  constructor(limiter: FleetLimiter, clock: () => number, waits: boolean) {
    this.#limiter = limiter;
    this.#clock = clock;
    this.#waits = waits;
  }

  async take(key: Key, cost: Costs): Promise<Timed> {
    if (this.#isClosed) throw disposed();
    const decision = await this.#asked(
      () => this.#limiter.hit(key as string, cost),
      () => errorDecision(false),
    );
    return this.#decision(key, cost, decision);
  }

  /** Returns the result of the limiter; if its store failed and calls wait, that of `later`. */
  async #asked<Result>(ask: () => PromiseLike<Result>, later: () => Result): Promise<Result> {
    try {
      return await unpublished(ask);
    } catch (error) {
      if (!this.#waits || !isStoreError(error)) throw error;
      return later();
    }
  }

  /** Reserves instead of a hit; `reserved` is called at once with a reservation that was allowed. */
  async reserve(
    key: Key,
    cost: Costs,
    ttl: Duration | undefined,
    reserved: (reservation: AsyncReservation) => void,
  ): Promise<Timed> {
    if (this.#isClosed) throw disposed();
    const reserve = this.#limiter.reserve?.bind(this.#limiter);
    if (reserve === undefined)
      throw new TollgateError("invalid_operation", "run: the limiter has no reserve; use acquire");
    const reservation = await this.#asked<Pick<AsyncReservation, "decision">>(
      () => reserve(key as string, cost, { ttl }),
      () => ({ decision: errorDecision(false) }),
    );
    const timed = this.#decision(key, cost, reservation.decision);
    if (timed.decision.allowed) reserved(reservation as AsyncReservation);
    return timed;
  }

  /** Keeps a decision, by which the waits of the next calls are expected. */
  #decision(key: Key, cost: Costs, given: Decision): Timed {
    const decision = { ...given };
    const { allowed, retryAfter } = decision as Partial<Decision>;
    // A wait of 0 would have the limiter asked again at once, for ever.
    if (typeof allowed !== "boolean" || (!allowed && !((retryAfter as number) > 0)))
      throw new TollgateError(
        "invalid_operation",
        "limiter: its hit returned no decision; it is allowed, or has a retryAfter above 0",
      );
    const timed = { decision, now: this.#clock() };
    this.#decided.set(key, { ...timed, cost });
    return timed;
  }

  /** The limits of the queue, which decides nothing by them: only waits are expected by a copy. */
  limits(): Limits {
    const hit = (): never => {
      throw disposed();
    };
    const ahead = (key: Key, clock: () => number) => {
      try {
        return this.#ahead(key, clock);
      } catch {
        // The numbers of its decision are none, so no wait is expected.
        return undefined;
      }
    };
    // Always loading: a hit in this process would be no decision.
    return { loading: Promise.resolve(), hit, peek: hit, ahead, [Symbol.dispose]() {} };
  }

  /**
   * Returns a limiter in this process that decides as the other would if no other process used it, as far as the last
   * decision tells: the policy that it named has been used as much as it said.
   */
  #ahead(key: Key, clock: () => number): Hits | undefined {
    const last = this.#decided.get(key);
    const policy = this.#limiter.policies?.find(
      ({ name, algorithm }) => (name ?? algorithm) === last?.decision.policy,
    );
    if (last === undefined || policy === undefined || policy.algorithm === "concurrency") return undefined;
    const { decision, now, cost } = last;
    const used = decision.limit - decision.remaining;
    let at: number | undefined = now;
    const copy = muted(new RateLimiter(policy, { clock: () => at ?? clock(), maxKeys: 1 }));
    copy.hit("", used);
    if (!decision.allowed) {
      // It was used at a time after which this hit has to wait for as long as the limiter said.
      at = now - Math.max(copy.peek("", amountOf(cost, decision.policy)).retryAfter - decision.retryAfter, 0);
      copy.reset("");
      copy.hit("", used);
    }
    at = undefined;
    return {
      hit: (_, cost) => copy.hit("", amountOf(cost, decision.policy)),
      peek: (_, cost) => copy.peek("", amountOf(cost, decision.policy)),
      [Symbol.dispose]: () => copy[Symbol.dispose](),
    };
  }

  leave(key: Key): void {
    this.#decided.delete(key);
  }

  hold(): void {}

  rest(): void {}

  close(): void {
    this.#isClosed = true;
    this.#decided.clear();
  }
}

const disposed = () => new TollgateError("disposed", "this throttle was disposed of; make a new one");

const amountOf = (cost: Costs, policy: string): number =>
  typeof cost === "number" ? cost : (cost[policy] ?? 1);

function checkLimiter(limiter: FleetLimiter): void {
  if (typeof Object(limiter).hit !== "function")
    throw invalidField("invalid_option", "limiter", limiter, "a limiter, such as a RedisLimiter");
  const counted = limiter.policies?.find((policy) => "denied" in policy && policy.denied === "count");
  // A waiter must not put off its own turn.
  if (counted !== undefined)
    throw invalidField("invalid_option", "limiter", counted, 'a limiter whose policies have denied: "free"');
}

/** Returns a copy of the options of a throttle over a limiter; nothing if they are policies. */
export function fleetOptions(given: object): Partial<FleetOptions> {
  if (!("limiter" in Object(given))) return {};
  const { shared, learn, ...options } = given as FleetOptions & ThrottleOptions;
  const { onError = "throw" } = options;
  if (onError !== "throw" && onError !== "wait")
    throw invalidField("invalid_option", "onError", onError, '"throw" or "wait"');
  if (shared !== undefined)
    throw invalidField(
      "invalid_option",
      "shared",
      shared,
      "used with policies; a limiter is shared by itself",
    );
  if (learn)
    throw invalidField(
      "invalid_option",
      "learn",
      learn,
      "used with policies; other processes use the same limits",
    );
  checkLimiter(options.limiter);
  return options;
}
