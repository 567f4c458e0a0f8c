import { checkKey } from "../checks.ts";
import { invalidField, TollgateError } from "../errors/error.ts";
import type { Costs, Decision, Key, Policies, Policy } from "../types.ts";
import { platformTimer, type Timer } from "./alarm.ts";
import { type BatchOptions, type BatchResult, batched } from "./batch.ts";
import { checkAcquireOptions, checkFromZero, checkThrottleOptions } from "./checks.ts";
import { Delays } from "./delays.ts";
import { defaultMaxHold, type FetchOptions, fetchThrough } from "./fetch.ts";
import type { Limits } from "./limits.ts";
import type { Place, QueueState } from "./places.ts";
import type { Fetch, FetchResponse, Signal } from "./platform.ts";
import { Queue } from "./queue.ts";
import { SharedByTabs, type StepOf } from "./shared-by-tabs.ts";
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
 * The core of a throttle, which decides hits.
 * @internal
 */
export interface ThrottleCore {
  readonly limitsOf: (policies: Policies, clock: () => number) => Limits;
  /** Returns the function by which a shared budget decides. */
  readonly stepOf: StepOf;
}

/**
 * A throttle waits instead of denying. `Throttle` adds the methods that need reservations.
 */
export abstract class BasicThrottle {
  readonly #options: ThrottleOptions;
  readonly #clock: () => number;
  readonly #limits: Limits;
  readonly #budget: SharedByTabs | undefined;
  readonly #delays: Delays;
  /** @internal */
  protected readonly queue: Queue;

  /** @internal */
  protected constructor(policies: Policies, options: ThrottleOptions, { limitsOf, stepOf }: ThrottleCore) {
    checkThrottleOptions(options);
    const { clock = Date.now, timer = platformTimer, shared, maxHold = defaultMaxHold } = options;
    const free = withFreeDenials(policies);
    const limits = limitsOf(free, clock);
    if (shared !== undefined)
      this.#budget = new SharedByTabs(shared, free, clock, limits, maxHold, stepOf, (key) =>
        this.queue.serveAgain(key),
      );
    this.#options = options;
    this.#clock = clock;
    this.#limits = limits;
    this.#delays = new Delays(timer);
    this.queue = new Queue(limits, this.#budget, clock, timer, options);
  }

  /** How many calls wait. */
  get pending(): number {
    return this.queue.pending;
  }

  /** Waits until the policy allows it, and returns the decision. A cost that can never fit is rejected at once. */
  acquire(options: AcquireOptions = {}): Promise<Decision> {
    return this.wait(options);
  }

  /** @internal */
  protected wait(
    options: AcquireOptions,
    costs?: Costs,
    take?: (costs: Costs) => Decision,
  ): Promise<Decision> {
    return new Promise((resolve, reject) => {
      checkAcquireOptions(options);
      this.queue.wait(options, costs ?? options.cost ?? 1, take, resolve, reject);
    });
  }

  /** Returns a function each call of which waits its turn; for events of a page, only some of them. */
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

  /** A `fetch` that waits its turn, by origin, and obeys the limits that servers return. */
  fetch(...[input, init]: Parameters<Fetch>): Promise<FetchResponse> {
    return fetchThrough(this, this.#clock, this.#options, input, init);
  }

  /** Lets no call of a key through for a while, whatever the policy allows; with a shared budget, in no tab. */
  hold(key: Key, milliseconds: number): void {
    checkKey(key);
    checkFromZero({ milliseconds }, "milliseconds");
    this.queue.hold(key, milliseconds);
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
  clear(reason: unknown = new TollgateError("cleared", "clear() was called")): void {
    this.#delays.clear(reason);
    this.queue.clear(reason);
  }

  /** Rejects all waiting calls, and frees its memory, its database and its channel to other tabs. */
  [Symbol.dispose](): void {
    this.#limits[Symbol.dispose]();
    this.#budget?.close();
    this.clear();
    this.queue.dispose();
  }
}

/** Returns the policies with denied hits that change no state: a waiter must not put off its own turn. */
function withFreeDenials(policies: Policies): Policies {
  // An invalid policy is left as it is, and the limiter rejects it.
  const free = (policy: Policy): Policy => {
    const { algorithm, scale } = Object(policy);
    if (algorithm === "ban")
      throw invalidField(
        "invalid_policy",
        "algorithm",
        algorithm,
        "accepted by a Throttle, whose calls wait",
      );
    return scale === undefined ? policy : ({ ...policy, denied: "free" } as Policy);
  };
  return Array.isArray(policies) ? policies.map(free) : free(policies as Policy);
}
