import { checkKey } from "../checks.ts";
import { invalidField, TollgateError } from "../errors/error.ts";
import type { Costs, Decision, Key, Policies, Policy } from "../types.ts";
import { platformTimer } from "./alarm.ts";
import type { AcquireOptions, ThrottleOptions } from "./basic-throttle.ts";
import { checkAcquireOptions, checkFromZero, checkTenant, checkThrottleOptions } from "./checks.ts";
import { defaultMaxHold, fetchThrough, RetryBudget } from "./fetch.ts";
import type { LearnedLimits, LimitsOf } from "./learned-limits.ts";
import type { Budget, Limits } from "./limits.ts";
import type { Waiter } from "./line.ts";
import { namedKey } from "./named-key.ts";
import type { Fetch, FetchRequest, FetchResponse } from "./platform.ts";
import { Queue } from "./queue.ts";
import { SharedByTabs, type StepOf } from "./shared-by-tabs.ts";

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

/** The part of a throttle that `fetch` needs: a page that imports only `throttledFetch` has no other. */
export class FetchThrottle {
  readonly #options: ThrottleOptions;
  readonly #clock: () => number;
  readonly #budget: Budget | undefined;
  readonly #retries: RetryBudget;
  /** The limits that servers report, if they are learned; their code is loaded for it. */
  readonly #learned: Promise<LearnedLimits | undefined> | undefined;
  /** @internal */
  protected readonly queue: Queue;

  /** @internal */
  constructor(policies: Policies, options: ThrottleOptions, core: ThrottleCore) {
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
    this.#retries = new RetryBudget(options.retryBudget);
    this.#clock = clock;
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

  /** A `fetch` that waits its turn, by origin, and obeys the limits that servers return. */
  fetch(...[input, init]: Parameters<Fetch>): Promise<FetchResponse> {
    const throttle = {
      learned: this.#learned,
      retries: this.#retries,
      wait: (options: AcquireOptions, request: FetchRequest) =>
        this.wait(options, undefined, undefined, request),
      hold: (key: Key, milliseconds: number) => this.hold(key, milliseconds),
    };
    return fetchThrough(throttle, this.#clock, this.#options, input, init);
  }

  /** Lets no call of a key through for a while, whatever the policy allows; with a shared budget, in no tab. */
  hold(key: Key, milliseconds: number): void {
    checkKey(key);
    if (milliseconds === undefined)
      throw invalidField("invalid_option", "milliseconds", undefined, "a number of milliseconds, 0 or more");
    checkFromZero({ milliseconds }, "milliseconds");
    this.queue.hold(namedKey(key), milliseconds);
  }

  /** Rejects all waiting calls: with a reason, or an error with the code `cleared`. */
  clear(reason: unknown = new TollgateError("cleared", "clear() was called")): void {
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
