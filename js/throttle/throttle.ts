import { copiedOptions } from "../checks.ts";
import type { TollgateError } from "../errors/error.ts";
import { muted } from "../events/publisher.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import { step } from "../limiter/step.ts";
import type { AsyncReservation } from "../reservation/async-reservation.ts";
import type { Reservation } from "../reservation/reservation.ts";
import type { Costs, Decision, Duration, Key, Policies } from "../types.ts";
import { schema } from "../wasm/generated.ts";
import { type AcquireOptions, BasicThrottle, type ThrottleOptions } from "./basic-throttle.ts";
import { runNames } from "./checks.ts";
import { Fleet, type FleetOptions, fleetOptions } from "./fleet.ts";
import type { Limits } from "./limits.ts";
import type { Waiter } from "./line.ts";
import { namedKey } from "./named-key.ts";
import type { FetchRequest } from "./platform.ts";
import { checkRun, type Running, type RunOptions, running, runOnly } from "./run.ts";

/**
 * Waits instead of denying: each `acquire` is let through when the policy allows it, in order of arrival.
 *
 * @example
 * ```ts
 * import { Throttle } from "tollgate";
 *
 * const throttle = new Throttle({ algorithm: "token_bucket", capacity: 5, refillRate: 2 });
 * await throttle.acquire({ key: "search", maxWait: 10_000 });
 * const save = throttle.wrap(async (text: string) => text.length);
 * console.log(await save("hello"));
 * ```
 */
export class Throttle extends BasicThrottle {
  readonly #limiter: RateLimiter | undefined;
  readonly #fleet: Fleet | undefined;
  readonly #isShared: boolean;
  /** The error of `acquire` under a policy that counts only running work. */
  readonly #runOnly: TollgateError | undefined;

  constructor(policies: Policies, options?: ThrottleOptions);
  /**
   * Waits for a limiter outside the process, such as a `RedisLimiter`: all processes that use it wait for one budget.
   *
   * @example
   * ```ts
   * import { Throttle } from "tollgate";
   * import { StoreLimiter } from "tollgate/store";
   * import { memoryStore } from "tollgate/testing";
   *
   * const policy = { algorithm: "token_bucket", capacity: 5, refillRate: 2 } as const;
   * const limiter = new StoreLimiter(policy, { store: memoryStore() });
   * const throttle = new Throttle({ limiter });
   * const { remaining } = await throttle.acquire({ key: "api.example.com" });
   * console.log(remaining); // => 4
   * ```
   */
  constructor(options: FleetOptions);
  constructor(given: Policies | FleetOptions, options: ThrottleOptions = {}) {
    const { limiter: outside, onError, ...own } = fleetOptions(given);
    const rest: ThrottleOptions = outside ? own : options;
    const fleet = outside && new Fleet(outside, rest.clock ?? Date.now, onError === "wait");
    let limiter: RateLimiter | undefined;
    super(fleet ? [] : (given as Policies), rest, {
      budget: fleet,
      limitsOf: (free, clock) => {
        if (fleet) return fleet.limits();
        // Nobody is denied here: a call that does not fit waits.
        const made = muted(new RateLimiter(free, { clock }));
        limiter ??= made;
        return limitsOf(made);
      },
      stepOf: (free) => (state, operation, cost, now) => step(free, state, operation, cost, now),
    });
    this.#limiter = limiter;
    this.#fleet = fleet;
    this.#isShared = rest.shared !== undefined;
    this.#runOnly = runOnly((fleet ? outside?.policies : limiter?.policies) ?? []);
  }

  /** @internal */
  protected override wait(
    options: AcquireOptions,
    costs?: Costs,
    take?: Waiter["take"],
    request?: FetchRequest,
  ): Promise<Decision> {
    const error = take === undefined ? this.#runOnly : undefined;
    return error === undefined ? super.wait(options, costs, take, request) : Promise.reject(error);
  }

  /**
   * Waits as `acquire` does, runs the work, and settles its reservation: in full, or by what the work passes to
   * `settle`. Its slot under a concurrency policy is free again when it ends.
   *
   * @example
   * ```ts
   * import { Throttle } from "tollgate";
   *
   * const throttle = new Throttle({ algorithm: "concurrency", limit: 4 });
   * const pages = ["/a", "/b", "/c"];
   * const sizes = await Promise.all(pages.map((page) => throttle.run(async () => page.length)));
   * console.log(sizes); // => [2, 2, 2]
   * ```
   */
  async run<Result>(
    work: (running: Running) => Result | PromiseLike<Result>,
    options: RunOptions = {},
  ): Promise<Result> {
    const { ttl, cancelOnThrow = false, cost = 1, ...rest } = copiedOptions(options, runNames);
    checkRun(work, options, this.#isShared);
    const key = namedKey(rest.key);
    let isOpen = false;
    let isOver = false;
    let reservation: Reservation | AsyncReservation | undefined;
    // At once: the next waiter in the same turn may wait for its end.
    const reserved = (made: Reservation | AsyncReservation) => {
      reservation = made;
      isOpen = true;
      this.queue.start(key);
      if (isOver) giveBack();
    };
    const ended = () => {
      if (isOpen) this.queue.end(key);
      isOpen = false;
    };
    const take = (costs: Costs) =>
      this.#fleet?.reserve(key, costs, ttl, reserved) ?? this.#reserve(key, costs, ttl, reserved);
    // The call gave up while it was reserved. If that cannot be given back, it ends by itself.
    const giveBack = () => Promise.resolve(reservation?.settle(0)).then(ended, ended);
    try {
      await this.wait(rest, cost, take);
    } catch (error) {
      isOver = true;
      giveBack();
      throw error;
    }
    return running(work, reservation as unknown as Reservation, cancelOnThrow, ended);
  }

  #reserve(
    key: Key,
    costs: Costs,
    ttl: Duration = schema.maxTtl,
    reserved: (reservation: Reservation) => void,
  ): Decision {
    const limiter = this.#limiter as RateLimiter;
    const reservation = limiter.reserve(key, costs, { ttl });
    if (reservation.allowed) reserved(reservation);
    return reservation.decision;
  }
}

const limitsOf = (limiter: RateLimiter): Limits => ({
  hit: (key, cost) => limiter.hit(key, cost),
  peek: (key, cost) => limiter.peek(key, cost),
  // The end of running work is not known.
  ahead: (key, clock) =>
    runOnly(limiter.policies) ? undefined : muted(RateLimiter.restore(limiter.snapshot(key), { clock })),
  [Symbol.dispose]: () => limiter[Symbol.dispose](),
});
