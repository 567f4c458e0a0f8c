import { checkKey } from "../checks.ts";
import { TollgateError } from "../errors/error.ts";
import type { Costs, Decision, Key, Policies, Policy } from "../types.ts";
import { platformTimer, type Timer } from "./alarm.ts";
import { type BatchOptions, type BatchResult, batched } from "./batch.ts";
import { checkAcquireOptions, checkFromZero, checkTenant, checkThrottleOptions } from "./checks.ts";
import { Delays } from "./delays.ts";
import { defaultMaxHold, type FetchOptions, type FetchThrottle, fetchThrough } from "./fetch.ts";
import type { LearnedLimits, LimitsOf } from "./learned-limits.ts";
import type { Budget, Limits } from "./limits.ts";
import type { Waiter } from "./line.ts";
import type { Place, QueueState } from "./places.ts";
import type { Fetch, FetchRequest, FetchResponse, Signal } from "./platform.ts";
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
  /** Who makes the call: of calls with the same key and priority, one of each tenant is served in turn. */
  readonly tenant?: Key | undefined;
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
  /** Decides instead of the limits, if it is there. */
  readonly budget?: Budget | undefined;
}

/**
 * A throttle waits instead of denying. `Throttle` adds the methods that need reservations.
 */
export abstract class BasicThrottle {
  readonly #options: ThrottleOptions;
  readonly #clock: () => number;
  readonly #budget: Budget | undefined;
  /** The limits that servers report, if they are learned; their code is loaded for it. */
  readonly #learned: Promise<LearnedLimits | undefined> | undefined;
  readonly #delays: Delays;
  /** @internal */
  protected readonly queue: Queue;

  /** @internal */
  protected constructor(policies: Policies, options: ThrottleOptions, core: ThrottleCore) {
    checkThrottleOptions(options);
    const { clock = Date.now, timer = platformTimer, shared, maxHold = defaultMaxHold } = options;
    const free = withFreeDenials(policies);
    const { limitsOf } = core;
    const limits = limitsOf(free, clock);
    this.#budget = core.budget;
    if (shared !== undefined)
      this.#budget = new SharedByTabs(shared, free, clock, limits, maxHold, core.stepOf, (key) =>
        this.queue.serveAgain(key),
      );
    this.#options = options;
    this.#clock = clock;
    this.#delays = new Delays(timer);
    this.queue = new Queue(limits, this.#budget, clock, timer, options);
    if (options.learn) this.#learned = this.#learn(limitsOf, limits);
  }

  /** Has the queue obey the limits that servers report, too. */
  async #learn(limitsOf: LimitsOf, limits: Limits): Promise<LearnedLimits | undefined> {
    try {
      const { LearnedLimits } = await import("./learn-chunk.ts");
      const learned = new LearnedLimits(limits, limitsOf, this.#clock);
      this.queue.limits = learned;
      return learned;
    } catch (error) {
      console.warn("tollgate: learned limits cannot be loaded, so this page learns none.", error);
      return undefined;
    }
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
    take?: Waiter["take"],
    request?: FetchRequest,
  ): Promise<Decision> {
    return new Promise((resolve, reject) => {
      checkAcquireOptions(options);
      const { fair } = this.#options;
      const tenant = fair ? fair({ ...options, request }) : options.tenant;
      checkTenant(tenant);
      this.queue.wait(options, tenant, costs ?? options.cost ?? 1, take, resolve, reject);
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
    const throttle: FetchThrottle = {
      learned: this.#learned,
      wait: (options, request) => this.wait(options, undefined, undefined, request),
      hold: (key, milliseconds) => this.hold(key, milliseconds),
    };
    return fetchThrough(throttle, this.#clock, this.#options, input, init);
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
    this.queue.limits[Symbol.dispose]();
    this.#budget?.close();
    this.clear();
    this.queue.dispose();
  }
}

/** Returns the policies with denied hits that change no state: a waiter must not put off its own turn. */
function withFreeDenials(policies: Policies): Policies {
  // An invalid policy is left as it is, and the limiter rejects it.
  const free = (policy: Policy): Policy =>
    "scale" in Object(policy) ? ({ ...policy, denied: "free" } as Policy) : policy;
  return Array.isArray(policies) ? policies.map(free) : free(policies as Policy);
}
