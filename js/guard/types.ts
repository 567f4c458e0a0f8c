export type {
  DecidedBy,
  DecidedOperation,
  DecisionMessage,
  ErrorMessage,
  LimiterKind,
} from "../events/messages.ts";

import type { ErrorMessage } from "../events/messages.ts";
import type { AddressRanges } from "../http/ranges.ts";
import type { BanPolicy, Costs, Decision, Key, Policies, Policy, ReserveOptions } from "../types.ts";

/** A value, or a promise of one. */
export type Awaitable<Value> = Value | PromiseLike<Value>;

/** A reservation, as far as a guard needs it. */
export interface GuardReservation {
  /** Whether it was granted. */
  readonly allowed: boolean;
  /** The decision that granted or denied it. */
  readonly decision: Decision;
  /** Names the reservation when it is settled. */
  readonly id: string;
}

/** The part of a limiter that a guard needs: methods of `RateLimiter`, whether they return values or promises. */
export interface GuardLimiter {
  /** The policies it decides by, if it knows them. */
  readonly policies?: readonly Policy[] | undefined;
  /** Decides whether the key may act now, and charges `costs` if so. */
  hit(key: Key, costs?: Costs, policies?: Policies): Awaitable<Decision>;
  /** Sets `costs` aside until they are settled. Needed for `charge: "failures"` and `"successes"`. */
  reserve?(key: Key, costs?: Costs, options?: ReserveOptions): Awaitable<GuardReservation>;
  /** Charges a reservation. */
  settle?(id: string, used?: Costs): unknown;
  /** Gives a reservation back. */
  cancel?(id: string): unknown;
}

/** The object of one key, as its namespace returns it. */
export interface GuardObject {
  /** Decides whether the key may act now, and charges `costs` if so. */
  hit(policies: Policies, costs?: Costs): Awaitable<Decision>;
  /** Sets `costs` aside until they are settled. Needed for `charge: "failures"` and `"successes"`. */
  reserve?(policies: Policies, costs?: Costs): Awaitable<GuardReservation>;
  /** Charges a reservation: what was used, or all of it. */
  settle?(policies: Policies, id: string, used?: Costs): unknown;
  /** Gives a reservation back. */
  cancel?(policies: Policies, id: string): unknown;
}

/** A Durable Object namespace of `RateLimiterObject`: `env.LIMITERS`. */
export interface GuardNamespace {
  /** Returns the object of a key. */
  getByName(name: string): GuardObject;
}

/** The answer of a rate-limit binding. */
export interface GuardBindingOutcome {
  /** True if the request may go on. */
  readonly success: boolean;
}

/** A rate-limit binding of Cloudflare: `env.RATE_LIMIT`. It counts by location, and not exactly. */
export interface GuardBinding {
  /** Counts a request of the key, and returns whether it may go on. */
  limit(options: { readonly key: string }): Awaitable<GuardBindingOutcome>;
}

/** The accepted types of the option `limiter`. */
export type AnyLimiter = GuardLimiter | GuardNamespace | GuardBinding;

/** What happens to a request if the limiter fails. */
export type ErrorVerdict = Exclude<ErrorMessage["verdict"], "fallback">;

/** What is done with a key that no store takes. */
export type LongKeys = "reject" | "hash";

/** The fields of a ban, without its algorithm. */
export type BanOptions = Omit<BanPolicy, "algorithm">;

/** One of the limits of a request. */
export interface LimitOptions<Request> {
  /** Returns the key; by default `ipKey` of the client's address. */
  readonly key?: ((request: Request) => Awaitable<Key>) | undefined;
  /** The policy, or several, counted in memory. Required, unless there is a `limiter`. */
  readonly policy?: Policies | undefined;
  /** Decides by its own policies: a `RateLimiter`, `RedisLimiter` or `StoreLimiter`. */
  readonly limiter?: GuardLimiter | undefined;
  /** The cost; 1 by default. */
  readonly cost?: Costs | ((request: Request) => Awaitable<Costs>) | undefined;
}

/** The options of a guard. `Request` and `Response` are the framework's own, `Arguments` are those of its handlers. */
export interface GuardOptions<Request, Arguments extends readonly unknown[] = [Request], Response = unknown> {
  /** The policy, or several that are one decision. Required, unless `limiter` has its own, `policyFor` returns them or there are `limits`. */
  readonly policy?: Policies | undefined;
  /**
   * Several keys in one decision, such as an address and a user: all are charged, or none. Instead of `policy`, `limiter`,
   * `key` and `cost`. The policies have different names.
   */
  readonly limits?: readonly LimitOptions<Request>[] | undefined;
  /**
   * Decides instead of a limiter in memory: a `RateLimiter`, `RedisLimiter`, `StoreLimiter` or `RemoteLimiter`, a
   * Durable Object namespace such as `env.LIMITERS`, a rate-limit binding of Cloudflare, or a function that returns one of
   * them for a request.
   */
  readonly limiter?: AnyLimiter | ((request: Request) => AnyLimiter) | undefined;
  /** Returns the key whose budget a request uses; by default `ipKey` of the client's address. */
  readonly key?: ((request: Request) => Awaitable<Key>) | undefined;
  /**
   * What is done with a key of a request that is longer than 1,024 bytes, or no well-formed text: a 400 (`"reject"`, the
   * default), or its hash is the key.
   */
  readonly longKeys?: LongKeys | undefined;
  /** The cost of a request; 1 by default. */
  readonly cost?: Costs | ((request: Request) => Awaitable<Costs>) | undefined;
  /**
   * Returns the policy of a request, for instance by the plan of its user; `undefined` or `null` for the guard's own. A limit
   * or capacity of 0 denies all. It may be asynchronous, and there may be any number of policies. Those with the same name, algorithm and `scale` share what was
   * used.
   */
  readonly policyFor?: ((request: Request) => Awaitable<Policies | null | undefined>) | undefined;
  /**
   * Denies a key for a while after it was denied too often: a policy of algorithm `ban` beside `policy`. A limiter that has
   * its own policies has the ban among them.
   */
  readonly ban?: BanOptions | undefined;
  /** Returns true for a request that is not limited; `inRanges([…])` for clients by their addresses. */
  readonly skip?: ((request: Request) => Awaitable<boolean>) | Pick<AddressRanges, "ranges"> | undefined;
  /**
   * Which requests are charged, by their response: all by default. A status below 400 is a success. A function returns the
   * charge of a response; until then `cost` is reserved, which is charged if the function fails or is late.
   */
  readonly charge?: "all" | "failures" | "successes" | ((response: Response) => Awaitable<Costs>) | undefined;
  /** `RateLimit` and `RateLimit-Policy` (the default), these and the older `X-RateLimit-*`, or none. */
  readonly headers?: "standard" | "legacy" | "none" | undefined;
  /** The response to a denied request: a 429 (the default), its usual response (`"allow"`), or that of the function. */
  readonly onDenied?: "deny" | "allow" | ((decision: Decision, ...handler: Arguments) => unknown) | undefined;
  /**
   * What happens when the limiter fails or is late: the request goes on, gets a 503, or fails with the error. A function
   * gets the error and the request and returns one of these words. By default the request goes on; if failures are charged
   * or there is a ban, which guard against guesses, it gets a 503.
   */
  readonly onError?:
    | ErrorVerdict
    | ((error: unknown, request: Request) => Awaitable<ErrorVerdict>)
    | undefined;
  /** Decides when the limiter fails or is late: a limiter, or the policy of one in memory. */
  readonly fallback?: GuardLimiter | Policies | undefined;
  /** Called with every decision before the request goes on. What it throws is only logged. */
  readonly onDecision?: ((decision: Decision, request: Request) => unknown) | undefined;
  /** How long an asynchronous limiter, or a function of these options, may take, in milliseconds; two seconds by default. */
  readonly timeout?: number | undefined;
}
