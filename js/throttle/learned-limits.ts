import type { Costs, Decision, Key, LeakyBucketPolicy, Policies } from "../types.ts";
import { never } from "./alarm.ts";
import type { Hits, Limits } from "./limits.ts";
import type { ServerLimit, ServerLimits } from "./server-limits.ts";

/** Returns limits by policies, under a clock. */
export type LimitsOf = (policies: Policies, clock: () => number) => Limits;

/** How many keys it knows the limits of. The one that was used least recently is forgotten first. */
const maxKeys = 1_000;

/** How many limits of one key it knows: a server has a few, and a hostile one must not fill the memory. */
const maxLimits = 8;

const second = 1_000;
const minute = 60_000;
/** How many times as long as it is a time in whole seconds may be taken for. */
const mostRounding = 16;

const atLeastOne = (count: number): number => Math.max(Math.floor(count), 1);

/** Returns the policy that lets a count through in a time, evenly: never two at once. */
const evenly = (count: number, time: number): LeakyBucketPolicy => ({
  algorithm: "leaky_bucket",
  capacity: 1,
  leakRate: atLeastOne(count),
  per: Math.ceil(time),
});

/**
 * The pace at which a limit that a server reported lets calls through, each of which is one request, whatever it costs.
 * The core decides.
 */
class Pace implements Hits {
  readonly #limitsOf: LimitsOf;
  readonly #clock: () => number;
  #limits: Hits & Partial<Pick<Limits, "ahead">>;
  /** When the limit resets: from then on, all of it is spread over its window. */
  #until: number;
  readonly #next: LeakyBucketPolicy | undefined;

  constructor(
    limitsOf: LimitsOf,
    clock: () => number,
    limits: Hits,
    until: number,
    next: LeakyBucketPolicy | undefined,
  ) {
    this.#limitsOf = limitsOf;
    this.#clock = clock;
    this.#limits = limits;
    this.#until = until;
    this.#next = next;
  }

  hit(): Decision {
    return this.#current().hit("", 1);
  }

  peek(): Decision {
    return this.#current().peek("", 1);
  }

  /** Returns a copy under a clock that runs ahead. */
  ahead(clock: () => number): Pace | undefined {
    const limits = this.#limits.ahead?.("", clock);
    return limits && new Pace(this.#limitsOf, clock, limits, this.#until, this.#next);
  }

  [Symbol.dispose](): void {
    this.#limits[Symbol.dispose]();
  }

  #current(): Hits {
    if (this.#next !== undefined && this.#clock() >= this.#until) {
      this.#until = never;
      this.#limits[Symbol.dispose]();
      this.#limits = this.#limitsOf(this.#next, this.#clock);
    }
    return this.#limits;
  }
}

/** Hits that are let through when a limiter and all paces allow them. */
class PacedHits implements Hits {
  readonly #own: Hits;
  readonly #paces: readonly Hits[];

  constructor(own: Hits, paces: readonly Hits[]) {
    this.#own = own;
    this.#paces = paces;
  }

  hit(key: Key, cost: Costs): Decision {
    const peeked = this.peek(key, cost);
    if (!peeked.allowed) {
      // A denied hit changes nothing, but follows a clock that was set back; a peek does not.
      for (const hits of [this.#own, ...this.#paces]) if (!hits.peek(key, cost).allowed) hits.hit(key, cost);
      return peeked;
    }
    const decision = this.#own.hit(key, cost);
    for (const pace of this.#paces) pace.hit(key, cost);
    return decision;
  }

  peek(key: Key, cost: Costs): Decision {
    const decision = this.#own.peek(key, cost);
    let { retryAfter } = decision;
    for (const pace of this.#paces) retryAfter = Math.max(retryAfter, pace.peek(key, cost).retryAfter);
    return retryAfter === decision.retryAfter ? decision : { ...decision, allowed: false, retryAfter };
  }

  [Symbol.dispose](): void {
    this.#own[Symbol.dispose]();
    for (const pace of this.#paces) pace[Symbol.dispose]();
  }
}

/** The requests of a key, and the paces that their responses have set. */
class KeyRequests {
  /** How many were sent. */
  sent = 0;
  /** How many of them have no response yet. */
  underway = 0;
  /** When the last one was sent. */
  sentAt = 0;
  /** Which request set the paces: the response of an earlier one is out of date. */
  latest = 0;
  readonly paces = new Map<string, Pace>();
  /** The longest time until a limit resets, by its name: as long as its window, as far as it is known. */
  readonly windows = new Map<string, number>();
}

/** Limits with those beside them that servers report: calls are spread evenly, so that no server has to deny one. */
export class LearnedLimits implements Limits {
  readonly #own: Limits;
  readonly #limitsOf: LimitsOf;
  readonly #clock: () => number;
  readonly #keys = new Map<Key, KeyRequests>();

  constructor(own: Limits, limitsOf: LimitsOf, clock: () => number) {
    this.#own = own;
    this.#limitsOf = limitsOf;
    this.#clock = clock;
  }

  get loading(): Promise<unknown> | undefined {
    return this.#own.loading;
  }

  hit(key: Key, cost: Costs): Decision {
    return this.#paced(key).hit(key, cost);
  }

  peek(key: Key, cost: Costs): Decision {
    return this.#paced(key).peek(key, cost);
  }

  ahead(key: Key, clock: () => number): Hits | undefined {
    const own = this.#own.ahead(key, clock);
    const paces = [...(this.#keys.get(key)?.paces.values() ?? [])].map((pace) => pace.ahead(clock));
    return own && new PacedHits(own, paces as Pace[]);
  }

  #paced(key: Key): Hits {
    const paces = this.#keys.get(key)?.paces;
    return paces?.size ? new PacedHits(this.#own, [...paces.values()]) : this.#own;
  }

  /** Notes that a request of a key is sent. Returns a function to call when it has a response, or has failed. */
  sent(key: Key): (reported?: ServerLimits) => void {
    const requests = this.#keys.get(key) ?? new KeyRequests();
    this.#keys.delete(key);
    this.#keys.set(key, requests);
    if (this.#keys.size > maxKeys) this.#forget(this.#keys.keys().next().value as Key);
    requests.underway += 1;
    requests.sent += 1;
    requests.sentAt = this.#clock();
    const number = requests.sent;
    return (reported) => {
      requests.underway -= 1;
      if (reported === undefined || number < requests.latest || this.#keys.get(key) !== requests) return;
      requests.latest = number;
      const ofRequests = reported.limits.filter(({ unit }) => unit === "requests");
      for (const limit of ofRequests.slice(0, maxLimits)) this.#learn(requests, limit);
    };
  }

  /** Sets the pace of a limit. One with numbers that no policy takes sets none. */
  #learn(requests: KeyRequests, reported: ServerLimit): void {
    const { name, remaining, resetAfter } = reported;
    if (!(remaining >= 0 && resetAfter > (reported.refills ? -minute : 0))) return;
    const { paces, windows } = requests;
    const window = reported.window > 0 ? reported.window : Math.max(resetAfter, windows.get(name) ?? 0);
    try {
      const pace = reported.refills
        ? this.#refilling(requests, reported)
        : this.#resetting(requests, reported, window);
      if (pace === undefined) return;
      paces.get(name)?.[Symbol.dispose]();
      paces.delete(name);
      paces.set(name, pace);
      windows.set(name, window);
    } catch {
      return;
    }
    for (const [first, pace] of paces) {
      if (paces.size <= maxLimits) break;
      pace[Symbol.dispose]();
      paces.delete(first);
      windows.delete(first);
    }
  }

  /**
   * Returns the pace of a bucket: as it refills, so that what is left does not change, and never more than is left. A time
   * in whole seconds may be two too long, if it is the difference of two: while much is left it is taken for a shorter
   * one, since more that is used tells the rate more exactly.
   */
  #refilling(requests: KeyRequests, reported: ServerLimit): Pace | undefined {
    const { limit, remaining, isRounded } = reported;
    // A date without the server's own may have passed by the client's clock.
    const resetAfter = isRounded ? Math.max(reported.resetAfter, second) : reported.resetAfter;
    const used = limit - remaining;
    // A full bucket says nothing about its rate.
    if (!(used > 0)) return undefined;
    const least = Math.max(resetAfter - 2 * second, resetAfter / mostRounding);
    const time = isRounded && remaining > limit / 2 ? least : resetAfter;
    const left = remaining - requests.underway;
    const policies = [
      evenly(used, time),
      { ...evenly(used, resetAfter), name: "left", capacity: atLeastOne(left) },
    ];
    return this.#pace(policies, left >= 1 ? requests.sentAt : this.#clock(), never, undefined);
  }

  /** Returns the pace of a window: what is left of it, and is not under way, is spread over the time until it ends. */
  #resetting(requests: KeyRequests, { limit, remaining, resetAfter }: ServerLimit, window: number): Pace {
    const now = this.#clock();
    const left = remaining - requests.underway;
    const next = evenly(limit > 0 ? limit : remaining, window);
    // Without anything left, the next call is one that the reset allows.
    return this.#pace(evenly(left, resetAfter), left >= 1 ? requests.sentAt : now, now + resetAfter, next);
  }

  /** Returns a pace under which a call was let through at a time. */
  #pace(policies: Policies, usedAt: number, until: number, next: LeakyBucketPolicy | undefined): Pace {
    const now = this.#clock();
    let at: number | undefined = Math.min(usedAt, now);
    const limits = this.#limitsOf(policies, () => at ?? this.#clock());
    limits.hit("", 1);
    at = undefined;
    return new Pace(this.#limitsOf, this.#clock, limits, until, next);
  }

  #forget(key: Key): void {
    for (const pace of this.#keys.get(key)?.paces.values() ?? []) pace[Symbol.dispose]();
    this.#keys.delete(key);
  }

  [Symbol.dispose](): void {
    for (const key of this.#keys.keys()) this.#forget(key);
    this.#own[Symbol.dispose]();
  }
}
