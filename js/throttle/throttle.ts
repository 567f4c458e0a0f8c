import { checkKey, copiedOptions } from "../checks.ts";
import type { TollgateError } from "../errors/error.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { Reservation } from "../reservation/reservation.ts";
import type { Costs, Decision, Key, Policies, Policy } from "../types.ts";
import { schema } from "../wasm/generated.ts";
import { never, type Timer } from "./alarm.ts";
import { checkAcquireOptions, checkFromZero, checkThrottleOptions, runNames } from "./checks.ts";
import { defaultMaxHold, type FetchOptions, fetchThrough } from "./fetch.ts";
import type { Place } from "./places.ts";
import type { Fetch, FetchResponse, Signal } from "./platform.ts";
import { Queue } from "./queue.ts";
import { checkRun, type Running, type RunOptions, running, runOnly } from "./run.ts";
import { SharedBudget } from "./shared.ts";
import { type WrapOptions, type Wrapped, wrapped } from "./wrap.ts";

/** The options of a throttle. */
export interface ThrottleOptions extends FetchOptions {
  /** Milliseconds since the epoch; `Date.now` by default. */
  readonly clock?: (() => number) | undefined;
  /** Starts a timer and returns a function that stops it; `setTimeout` by default. For tests, with `clock`. */
  readonly timer?: Timer | undefined;
  /** How many calls may wait at once; no bound by default. */
  readonly maxQueue?: number | undefined;
  /** A name under which all tabs and workers of this origin share one budget, in IndexedDB. */
  readonly shared?: string | undefined;
  /** Called when the number of waiting calls has changed. */
  readonly onChange?: ((change: ThrottleChange) => void) | undefined;
}

/** A change of a throttle. */
export interface ThrottleChange {
  /** How many calls wait now. */
  readonly pending: number;
}

/** The options of `acquire`. */
export interface AcquireOptions {
  /** The key whose budget is used; one for all calls by default. */
  readonly key?: Key | undefined;
  /** The cost; 1 by default. */
  readonly cost?: number | undefined;
  /** Gives up when it is aborted. */
  readonly signal?: Signal | undefined;
  /** Gives up when it has waited, or would have to wait, for longer than that many milliseconds. */
  readonly maxWait?: number | undefined;
  /** The priority among waiting calls; 0 by default, higher goes first. */
  readonly priority?: number | undefined;
  /** Called with its place while it waits, at first and whenever the place changes. */
  readonly onChange?: ((place: Place) => void) | undefined;
}

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
export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #clock: () => number;
  readonly #limiter: RateLimiter;
  readonly #budget: SharedBudget | undefined;
  readonly #queue: Queue;
  /** The error of `acquire` under a policy that counts only running work. */
  readonly #runOnly: TollgateError | undefined;

  constructor(policies: Policies, options: ThrottleOptions = {}) {
    checkThrottleOptions(options);
    const { clock = Date.now, shared, maxHold = defaultMaxHold } = options;
    const free = withFreeDenials(policies);
    const limiter = new RateLimiter(free, { clock });
    if (shared !== undefined)
      this.#budget = new SharedBudget(shared, free, clock, limiter, maxHold, (key) =>
        this.#queue.serveAgain(key),
      );
    this.#options = options;
    this.#clock = clock;
    this.#limiter = limiter;
    this.#runOnly = runOnly(limiter.policies);
    this.#queue = new Queue(limiter, this.#budget, clock, options, this.#runOnly !== undefined);
  }

  /** How many calls wait. */
  get pending(): number {
    return this.#queue.pending;
  }

  /** Waits until the policy allows it, and returns the decision. A cost that can never fit is rejected at once. */
  acquire(options: AcquireOptions = {}): Promise<Decision> {
    return this.#wait(options, undefined);
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
    const { ttl = schema.maxTtl, cancelOnThrow = false, cost, ...rest } = copiedOptions(options, runNames);
    checkRun(work, options, this.#budget !== undefined);
    const { key = "" } = rest;
    let reservation: Reservation | undefined;
    await this.#wait(rest, cost, (costs) => {
      reservation = this.#limiter.reserve(key, costs, { ttl });
      // At once: the next waiter in the same turn may wait for its end.
      if (reservation.allowed) this.#queue.start(key);
      return reservation.decision;
    });
    let isOpen = true;
    return running(work, reservation as unknown as Reservation, cancelOnThrow, () => {
      if (isOpen) this.#queue.end(key);
      isOpen = false;
    });
  }

  #wait(
    options: AcquireOptions,
    costs: Costs | undefined,
    take?: (costs: Costs) => Decision,
  ): Promise<Decision> {
    return new Promise((resolve, reject) => {
      checkAcquireOptions(options);
      if (take === undefined && this.#runOnly !== undefined) throw this.#runOnly;
      this.#queue.wait(options, costs ?? options.cost ?? 1, take, resolve, reject);
    });
  }

  /** Returns a function each call of which waits its turn; for events of a page, only the leading or trailing ones. */
  wrap<Args extends unknown[], Result>(
    work: (...args: Args) => Result | PromiseLike<Result>,
    options: WrapOptions = {},
  ): Wrapped<Args, Result> {
    return wrapped(this, work, options);
  }

  /** A `fetch` that waits its turn, by origin, and obeys the limits that servers return. */
  fetch(...[input, init]: Parameters<Fetch>): Promise<FetchResponse> {
    return fetchThrough(this, this.#clock, this.#options, input, init);
  }

  /** Lets no call of a key through for a while, whatever the policy allows; with a shared budget, in no tab. */
  hold(key: Key, milliseconds: number): void {
    checkKey(key);
    checkFromZero({ milliseconds }, "milliseconds");
    this.#queue.hold(key, milliseconds);
  }

  /** Rejects all waiting calls. */
  clear(): void {
    this.#queue.clear();
  }

  /** Rejects all waiting calls, and frees its memory, its database and its channel to other tabs. */
  [Symbol.dispose](): void {
    this.#limiter[Symbol.dispose]();
    this.#budget?.close();
    this.#queue.clear(never);
  }
}

/** Returns the policies with denied hits that change no state: a waiter must not put off its own turn. */
function withFreeDenials(policies: Policies): Policies {
  // An invalid policy is left as it is, and the limiter rejects it.
  const free = (policy: Policy): Policy =>
    "scale" in Object(policy) ? ({ ...policy, denied: "free" } as Policy) : policy;
  return Array.isArray(policies) ? policies.map(free) : free(policies as Policy);
}
