import { TollgateError } from "../errors/error.ts";
import type { Costs, Decision, Key, Policies } from "../types.ts";
import { platformTimer, type Timer } from "./alarm.ts";
import { type BatchOptions, type BatchResult, batched } from "./batch.ts";
import { Delays } from "./delays.ts";
import type { FetchOptions } from "./fetch.ts";
import { FetchThrottle, type ThrottleCore } from "./fetch-throttle.ts";
import type { Waiter } from "./line.ts";
import type { Place, QueueState } from "./places.ts";
import type { FetchRequest, Signal } from "./platform.ts";
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
  /**
   * Returns the tenant of a call. Calls that wait for the same key with the same priority are served by tenants in turn, so
   * that many calls of one do not delay the first of another. By default it is the call's `tenant`, or one for all.
   */
  readonly fair?: ((call: FairCall) => Key | undefined) | undefined;
  /** Called when the number of waiting calls has changed. */
  readonly onChange?: ((change: ThrottleChange) => void) | undefined;
}

/** A call whose tenant `fair` returns: the options of `acquire`, and the request of a `fetch`. */
export interface FairCall extends AcquireOptions {
  /** The request, if it is a `fetch`. */
  readonly request?: FetchRequest | undefined;
}

/** A change of a throttle. */
export interface ThrottleChange {
  /** How many calls wait now. */
  readonly pending: number;
}

/** The options of `acquire`. */
export interface AcquireOptions {
  /** The key whose budget is used; `"default"`, one for all calls, by default. */
  readonly key?: Key | undefined;
  /** The cost; 1 by default. */
  readonly cost?: number | undefined;
  /** Gives up when it is aborted. */
  readonly signal?: Signal | undefined;
  /** Gives up when it has waited, or would have to wait, for longer than that many milliseconds. */
  readonly maxWait?: number | undefined;
  /** The priority among waiting calls; 0 by default, higher goes first. */
  readonly priority?: number | undefined;
  /** Who makes the call: of calls with the same key and priority, one of each tenant is served in turn. */
  readonly tenant?: Key | undefined;
  /** Called with its place while it waits, at first and whenever the place changes. */
  readonly onChange?: ((place: Place) => void) | undefined;
}

/**
 * A throttle waits instead of denying. `Throttle` adds the methods that need reservations.
 */
export abstract class BasicThrottle extends FetchThrottle {
  readonly #delays: Delays;
  #isStopped = false;
  /** Resolves when no call waits and no work runs; undefined if nobody waits for that. */
  #idle: Promise<void> | undefined;

  /** @internal */
  protected constructor(policies: Policies, options: ThrottleOptions, core: ThrottleCore) {
    super(policies, options, core);
    this.#delays = new Delays(options.timer ?? platformTimer);
  }

  /** @internal */
  protected override wait(
    options: AcquireOptions,
    costs?: Costs,
    take?: Waiter["take"],
    request?: FetchRequest,
  ): Promise<Decision> {
    return this.#isStopped ? Promise.reject(stopped()) : super.wait(options, costs, take, request);
  }

  /** Lets no call of any key through until `resume`. Calls that wait keep their places, and their `maxWait` goes on. */
  pause(): void {
    this.queue.isPaused = true;
  }

  /** Lets calls through again after `pause`. */
  resume(): void {
    this.queue.isPaused = false;
    this.queue.serveAgain();
  }

  /** Resolves when no call waits, and no work of `run` runs. */
  onIdle(): Promise<void> {
    const { queue } = this;
    if (queue.isIdle) return Promise.resolve();
    this.#idle ??= new Promise((resolve) => {
      queue.onIdle = () => {
        queue.onIdle = this.#idle = undefined;
        resolve();
      };
    });
    return this.#idle;
  }

  /**
   * Accepts no more calls, and resolves when those that wait have been let through and no work of `run` runs: for the end of
   * a process. Later calls are rejected with the code `disposed`.
   *
   * @example
   * ```ts
   * import { Throttle } from "tollgate";
   *
   * const throttle = new Throttle({ algorithm: "concurrency", limit: 4 });
   * const work = throttle.run(async () => "done");
   * await throttle.stop();
   * console.log(await work); // => "done"
   * ```
   */
  stop(): Promise<void> {
    this.#isStopped = true;
    this.resume();
    return this.onIdle();
  }

  /** Waits until the policy allows it, and returns the decision. A cost that can never fit is rejected at once. */
  acquire(options: AcquireOptions = {}): Promise<Decision> {
    return this.wait(options);
  }

  /** Returns a function each call of which waits its turn; for events of a page, with an `edge`, only some of them. */
  wrap<Args extends unknown[], Result>(
    work: (...args: Args) => Result | PromiseLike<Result>,
    options?: WrapOptions & { readonly edge?: undefined },
  ): (...args: Args) => Promise<Result>;
  wrap<Args extends unknown[], Result>(
    work: (...args: Args) => Result | PromiseLike<Result>,
    options: WrapOptions,
  ): Wrapped<Args, Result>;
  wrap<Args extends unknown[], Result>(
    work: (...args: Args) => Result | PromiseLike<Result>,
    options: WrapOptions = {},
  ): Wrapped<Args, Result> {
    return wrapped(this, this.#delays, work, options);
  }

  /**
   * Returns a function that collects items, and calls the work with up to `most` of them when it is their turn. The
   * work returns an array with one result for each item, or anything else if there are none.
   *
   * @example
   * ```ts
   * import { Throttle } from "tollgate";
   *
   * const throttle = new Throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 1 });
   * const load = throttle.batch(async (ids: number[]) => ids.map((id) => `user ${id}`), { most: 100, wait: 10 });
   * console.log(await Promise.all([load(1), load(2)])); // => ["user 1", "user 2"]
   * ```
   */
  batch<Item, Returned>(
    work: (items: Item[]) => Returned,
    options: BatchOptions,
  ): (item: Item) => Promise<BatchResult<Returned>> {
    return batched(this, this.#delays, work, options);
  }

  /**
   * Calls a listener with the state of the queue, soon and whenever it changes. Returns a function that stops that.
   *
   * @example
   * ```ts
   * import { Throttle } from "tollgate";
   *
   * const throttle = new Throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 1 });
   * const unsubscribe = throttle.subscribe(({ pending, wait }) => console.log(pending, wait));
   * await throttle.acquire();
   * unsubscribe();
   * ```
   */
  subscribe(listener: (queue: QueueState) => void): () => void {
    return this.queue.subscribe(listener);
  }

  /** Rejects all waiting calls: with a reason, or an error with the code `cleared`. */
  override clear(reason: unknown = new TollgateError("cleared", "clear() was called")): void {
    this.#delays.clear(reason);
    super.clear(reason);
  }
}

const stopped = () => new TollgateError("disposed", "this throttle was stopped; make a new one");
