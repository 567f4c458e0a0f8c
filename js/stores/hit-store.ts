import { wrongOption } from "../guard/errors.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { Decision, Policies, Policy } from "../types.ts";
import { after, isNamespace, objectsOf, usedBy, waitOf } from "./limiter.ts";
import type { HitLimiter, StoreNamespace } from "./types.ts";

/** The hits of a client, and when they no longer count. */
export interface HitInfo {
  /** The hits that count now, this one included. */
  totalHits: number;
  /** When the client may come back; if it may now, when no hit counts any more. */
  resetTime: Date;
}

/** The options of a store. */
export interface HitStoreOptions {
  /** The policies of a Durable Object namespace. */
  readonly policy?: Policies | undefined;
  /** Put before each key, so that several rate limiters can use one limiter. */
  readonly prefix?: string | undefined;
  /** Milliseconds since the epoch; `Date.now` by default. The limiter has a clock of its own. */
  readonly clock?: (() => number) | undefined;
}

/** The options that the rate limiter passes to its store. */
export interface HitStoreInit {
  /** The window, in milliseconds. */
  readonly windowMs: number;
  /** How many hits it allows; a function if that depends on the request. */
  readonly limit: unknown;
  /** Whether it takes back the hits of requests that failed. */
  readonly skipFailedRequests?: boolean | undefined;
  /** Whether it takes back the hits of requests that succeeded. */
  readonly skipSuccessfulRequests?: boolean | undefined;
}

/** The most keys whose denials are remembered until they are taken back. */
const mostDenied = 10_000;

/** Counts the hits of a rate limiter that decides by itself. */
export class HitStore {
  /** Whether no other store shares the keys of this one: true for a limiter in memory. */
  readonly localKeys: boolean;
  /** Put before each key. */
  readonly prefix: string;
  /** The option under which the rate limiter takes back the hits that it denied, too. */
  protected readonly takesBackDenied: "skipFailedRequests" | "skipSuccessfulRequests" = "skipFailedRequests";
  readonly #clock: () => number;
  /** How many hits of a key were denied and not charged, and will be taken back. */
  readonly #denied = new Map<string, number>();
  #limiter: HitLimiter | undefined;
  #init: HitStoreInit | undefined;

  /** Returns a store over a limiter; without one, over a `fix_window_per_key` in memory with the caller's numbers. */
  constructor(limiter?: HitLimiter | StoreNamespace, options: HitStoreOptions = {}) {
    const { policy, prefix = "", clock = Date.now } = options;
    this.prefix = prefix;
    this.#clock = clock;
    this.localKeys = limiter === undefined || limiter instanceof RateLimiter;
    if (isNamespace(limiter)) {
      if (policy === undefined)
        throw wrongOption("policy", policy, "the policies by which the objects decide");
      this.#limiter = objectsOf(limiter, policy);
    } else if (limiter !== undefined && typeof limiter.hit !== "function")
      throw wrongOption("limiter", limiter, "a limiter, or a Durable Object namespace with policy");
    else this.#limiter = limiter;
  }

  /** Called by the rate limiter with its options. */
  init(options: HitStoreInit): void {
    const { windowMs, limit } = options;
    this.#init = { windowMs, limit, [this.takesBackDenied]: options[this.takesBackDenied] };
    const policies = this.#limiter?.policies;
    const [only] = policies?.length === 1 ? policies : [];
    const own = only === undefined ? limit : ownLimit(only, limit);
    if (typeof limit === "number" && own !== limit)
      throw wrongOption("limit", limit, `${own}, which is the limit of the store's limiter`);
    this.#limiter ??= inMemory(windowMs, limit);
  }

  /** Returns the hits of a client; undefined if none count. */
  get(key: string): HitInfo | undefined | Promise<HitInfo | undefined> {
    // A cost of 0 returns the count without one more hit.
    return after(this.#limiterOrThrow().peek(this.prefix + key, 0), (decision) =>
      decision.resetAfter === 0 ? undefined : this.#info(decision),
    );
  }

  /** Counts a hit. */
  increment(key: string): HitInfo | Promise<HitInfo> {
    return after(this.#limiterOrThrow().hit(this.prefix + key), (decision) => {
      if (!decision.allowed) this.#rememberDenied(key);
      return this.#info(decision);
    });
  }

  /** Takes a hit back, if it was charged. */
  decrement(key: string): void | Promise<void> {
    const denied = this.#denied.get(key) ?? 0;
    if (denied > 0) {
      this.#denied.delete(key);
      if (denied > 1) this.#denied.set(key, denied - 1);
      return;
    }
    return after(this.#limiterOrThrow().inc(this.prefix + key, -1), nothing);
  }

  /** Removes the hits of a client. */
  resetKey(key: string): void | Promise<void> {
    return after(this.#limiterOrThrow().reset(this.prefix + key), nothing);
  }

  /** Removes the hits of all clients. Only a store over its own limiter in memory can. */
  resetAll(): void {
    const { windowMs, limit } = this.#init ?? {};
    if (windowMs === undefined || !(this.#limiter instanceof RateLimiter) || !owned.has(this.#limiter))
      throw wrongOption("resetAll", "a limiter that was given", "a store without one, or reset each key");
    this.#limiter = inMemory(windowMs, limit);
  }

  /** Remembers a denied hit that was not charged: taking it back would allow another. */
  #rememberDenied(key: string): void {
    const [only] = this.#limiter?.policies ?? [];
    if (this.#init?.[this.takesBackDenied] !== true || (only !== undefined && isCounting(only))) return;
    const [oldest] = this.#denied.size < mostDenied ? [] : this.#denied.keys();
    if (oldest !== undefined) this.#denied.delete(oldest);
    this.#denied.set(key, (this.#denied.get(key) ?? 0) + 1);
  }

  #limiterOrThrow(): HitLimiter {
    if (this.#limiter === undefined)
      throw wrongOption("store", "before init", "it as the store of a rate limiter, or give it a limiter");
    return this.#limiter;
  }

  #info(decision: Decision): HitInfo {
    const limit = this.#init?.limit;
    // If the limit depends on the request, the hits of a denial must exceed any limit.
    const most = typeof limit === "number" ? limit : Number.MAX_SAFE_INTEGER - 1;
    return { totalHits: usedBy(decision, most), resetTime: new Date(this.#clock() + waitOf(decision)) };
  }
}

/** Returns true for a policy that counts denied hits, which decides alone. */
const isCounting = (policy: Policy): boolean => "denied" in policy && policy.denied === "count";

/** The limiters that stores made themselves. */
const owned = new WeakSet<RateLimiter>();

/** Returns a limiter in memory. If the limit is not a number it denies no hit, and the rate limiter compares. */
function inMemory(scale: number, limit: unknown): RateLimiter {
  const most = typeof limit === "number" && limit >= 1 ? limit : Number.MAX_SAFE_INTEGER;
  const policy = { algorithm: "fix_window_per_key", limit: most, scale, denied: "count" } as const;
  const limiter = new RateLimiter(policy);
  owned.add(limiter);
  return limiter;
}

const nothing = () => {};

/** Returns the limit or the capacity of a policy; `otherwise` for a ban, which has none. */
function ownLimit(policy: Policy, otherwise: HitStoreInit["limit"]): HitStoreInit["limit"] {
  if (policy.algorithm === "ban") return otherwise;
  return "limit" in policy ? policy.limit : policy.capacity;
}
