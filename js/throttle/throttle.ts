import { copiedOptions } from "../checks.ts";
import type { TollgateError } from "../errors/error.ts";
import { unpublished } from "../events/caller.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import { step } from "../limiter/step.ts";
import type { Reservation } from "../reservation/reservation.ts";
import type { Decision, Policies } from "../types.ts";
import { schema } from "../wasm/generated.ts";
import { type AcquireOptions, BasicThrottle, type ThrottleOptions } from "./basic-throttle.ts";
import { runNames } from "./checks.ts";
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
  readonly #limiter: RateLimiter;
  readonly #isShared: boolean;
  /** The error of `acquire` under a policy that counts only running work. */
  readonly #runOnly: TollgateError | undefined;

  constructor(policies: Policies, options: ThrottleOptions = {}) {
    let limiter: RateLimiter | undefined;
    super(policies, options, {
      limitsOf: (free, clock) => {
        const made = new RateLimiter(free, { clock });
        limiter = made;
        return {
          // Nobody is denied here: a call that does not fit waits.
          hit: (key, cost) => unpublished(() => made.hit(key, cost)),
          peek: (key, cost) => made.peek(key, cost),
          // The end of running work is not known.
          ahead: (key, clock) =>
            runOnly(made.policies) ? undefined : RateLimiter.restore(made.snapshot(key), { clock }),
          [Symbol.dispose]: () => made[Symbol.dispose](),
        };
      },
      stepOf: (free) => (state, operation, cost, now) => step(free, state, operation, cost, now),
    });
    this.#limiter = limiter as unknown as RateLimiter;
    this.#isShared = options.shared !== undefined;
    this.#runOnly = runOnly(this.#limiter.policies);
  }

  override acquire(options: AcquireOptions = {}): Promise<Decision> {
    return this.#runOnly === undefined ? super.acquire(options) : Promise.reject(this.#runOnly);
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
    const {
      ttl = schema.maxTtl,
      cancelOnThrow = false,
      cost = 1,
      ...rest
    } = copiedOptions(options, runNames);
    checkRun(work, options, this.#isShared);
    const { key = "" } = rest;
    let reservation: Reservation | undefined;
    await this.wait(rest, cost, (costs) => {
      reservation = unpublished(() => this.#limiter.reserve(key, costs, { ttl }));
      // At once: the next waiter in the same turn may wait for its end.
      if (reservation.allowed) this.queue.start(key);
      return reservation.decision;
    });
    let isOpen = true;
    return running(work, reservation as unknown as Reservation, cancelOnThrow, () => {
      if (isOpen) this.queue.end(key);
      isOpen = false;
    });
  }
}
