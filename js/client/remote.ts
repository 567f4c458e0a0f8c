import { AsyncReservation, type AsyncSettling } from "../async-reservation.ts";
import { checkFunctions, checkNames, copiedOptions } from "../checks.ts";
import { copiedCosts } from "../copied-costs.ts";
import { durationFormsText, leaseTtl, leaseTtlText, reservationText } from "../core/generated.ts";
import { isRecord } from "../costs.ts";
import { milliseconds, ttlExpected } from "../durations.ts";
import { fill, keyAccepts, refused, TollgateError, wrongAmount, wrongInc } from "../error.ts";
import type { Costs, Decision, Duration, Extension, Settlement } from "../types.ts";
import { Unsettled } from "../unsettled.ts";
import { Batches } from "./batches.ts";
import { decisionOf } from "./decision.ts";
import { LeasedHits } from "./leased-hits.ts";

/** Where the Worker is, and what to do when it cannot be asked. */
export interface RemoteOptions {
  /** The Worker's address with its prefix: `https://limits.example.com/_tollgate`. */
  readonly url: string | URL;
  /** The token of the Worker's HTTP API. */
  readonly token: string;
  /** One of the Worker's policies by its name, or several that are one decision. */
  readonly policy: string | readonly string[];
  /** How long to wait for an answer, in milliseconds; two seconds by default. */
  readonly timeout?: number | undefined;
  /** What `hit`, `peek` and `reserve` answer when there is no answer: by default nothing, they throw. */
  readonly onError?: "allow" | "deny" | "throw" | undefined;
  /** The `fetch` to use, for instance that of a service binding. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
  /**
   * Whether hits on a hot key are allowed from a lease: an amount that the Worker sets aside for this limiter, which is
   * spent without asking and reported later. Never more is allowed than without leases. By default every hit asks.
   */
  readonly leases?: boolean | LeaseOptions | undefined;
}

/** How a limiter holds leases. */
export interface LeaseOptions {
  /** How long a lease lasts at the most; one second by default, and at most ten. */
  readonly ttl?: Duration | undefined;
}

/** How a reservation is made. */
export interface RemoteReserveOptions {
  /** How long it lasts; by default the `ttl` of a concurrency policy, or one minute. At most a day. */
  readonly ttl?: Duration | undefined;
  /** Nothing: the numbers are those of the Worker. */
  readonly policies?: undefined;
}

/**
 * A limiter whose keys are in a Tollgate Worker: one budget for a whole fleet. The same methods as `RateLimiter`,
 * asynchronous. What is asked in one tick goes in one request.
 *
 * @example
 * ```ts
 * import { RemoteLimiter } from "tollgate/client";
 *
 * const token = process.env.TOLLGATE_TOKEN ?? "";
 * const limiter = new RemoteLimiter({ url: "https://limits.example.com/_tollgate", token, policy: "api" });
 * const decision = await limiter.hit("user:42");
 * ```
 *
 * With leases, most hits on a hot key need no request:
 *
 * @example
 * ```ts
 * import { RemoteLimiter } from "tollgate/client";
 *
 * const [url, token] = ["https://limits.example.com/_tollgate", process.env.TOLLGATE_TOKEN ?? ""];
 * const limiter = new RemoteLimiter({ url, token, policy: "api", leases: { ttl: "2s" } });
 * for (let count = 0; count < 20; count += 1) await limiter.hit("tenant:7");
 * ```
 */
export class RemoteLimiter {
  #batches: Batches;
  #policy: string | readonly string[];
  #leased: LeasedHits | undefined;
  #onError: "allow" | "deny" | "throw";
  #unsettled = new Unsettled();

  constructor(options: RemoteOptions) {
    checkNames(options, optionNames);
    checkFunctions(options, ["fetch"]);
    const { url, token, policy, timeout = 2_000, onError = "throw" } = options;
    // What was found is not told: it may be a secret, if not the right one.
    if (typeof token !== "string" || !/^[!-~]+$/.test(token))
      throw new TollgateError("invalid_option", "token: give the TOLLGATE_TOKEN of the Worker");
    checkPolicy(policy);
    if (!["allow", "deny", "throw"].includes(onError))
      throw refused("invalid_option", "onError", onError, '"allow", "deny" or "throw"');
    if (typeof timeout !== "number" || !(timeout > 0 && timeout < 2 ** 31))
      throw refused("invalid_option", "timeout", timeout, "a number of milliseconds up to 2147483647");
    const request = options.fetch ?? ((request: Request) => fetch(request));
    this.#batches = new Batches(address(url), token, timeout, request);
    this.#policy = policy;
    this.#onError = onError;
    const ttl = readLeases(options.leases);
    if (ttl !== undefined)
      this.#leased = new LeasedHits(ttl, [policy].flat(), (operation, item) => this.#ask(operation, item));
  }

  /**
   * Asks whether the key may act now, and takes `cost` if so: one number, or one for each policy by its name. Only one
   * number can be taken from a lease.
   */
  hit(key: string, cost: Costs = 1): Promise<Decision> {
    return this.#decision("hit", key, cost);
  }

  /** What a hit would answer. Changes nothing. */
  peek(key: string, cost: Costs = 1): Promise<Decision> {
    return this.#decision("peek", key, cost);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. By default that is the `ttl` of a concurrency policy, or a minute.
   */
  async reserve(key: string, cost: Costs = 1, options: RemoteReserveOptions = {}): Promise<AsyncReservation> {
    const { ttl, policies } = copiedOptions(options, ["ttl", "policies"]);
    if (policies !== undefined)
      throw refused("invalid_option", "policies", policies, "undefined: the numbers are those of the Worker");
    if (ttl !== undefined) checkTtl(ttl);
    const copy = copiedCosts(cost);
    const ids = this.#unsettled.take(key);
    const settles = ids.length === 0 ? undefined : ids;
    try {
      const answer = await this.#ask<WireReservation>("reserve", { key, cost: copy, ttl, settles });
      const { id, expiresAt } = answer;
      return new AsyncReservation(this.#settling, key, decisionOf(answer.decision), id ?? "", expiresAt ?? 0);
    } catch (error) {
      return new AsyncReservation(this.#settling, key, this.#without(error), "", 0);
    }
  }

  /**
   * Closes a reservation by its id and charges what was used; by default all of it. Answers `"settled"`, `"expired"` (it
   * had been charged in full) or `"closed"` (it had been settled).
   */
  async settle(id: string, used?: Costs): Promise<Settlement> {
    const copy = used === undefined ? undefined : copiedCosts(used);
    return (await this.#onReservation("settle", id, { used: copy })).settlement as Settlement;
  }

  /** Closes a reservation by its id without charging anything. */
  async cancel(id: string): Promise<Settlement> {
    return (await this.#onReservation("cancel", id, {})).settlement as Settlement;
  }

  /** Moves the end of a reservation, by its id, to so long from now. */
  async extend(id: string, ttl: Duration): Promise<Extension> {
    checkTtl(ttl);
    return (await this.#onReservation("extend", id, { ttl })).settlement as Extension;
  }

  /**
   * Adds without asking, and answers the count; a negative cost gives back. With several policies, `policy` names the one
   * that counts it.
   */
  async inc(key: string, cost = 1, policy?: string): Promise<number> {
    if (!Number.isFinite(cost)) throw wrongInc(cost);
    return this.#ask<{ count: number }>("inc", { key, cost, of: policy }).then(({ count }) => count);
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. Answers the count. */
  set(key: string, count: number, policy?: string): Promise<number> {
    return this.#ask<{ count: number }>("set", { key, count, of: policy }).then(({ count }) => count);
  }

  /** The key's count. */
  get(key: string, policy?: string): Promise<number> {
    return this.#ask<{ count: number }>("get", { key, of: policy }).then(({ count }) => count);
  }

  /** When the key's state ends, in milliseconds since the epoch; 0 when it has none. */
  expiresAt(key: string, policy?: string): Promise<number> {
    return this.#ask<{ expiresAt: number }>("expires_at", { key, of: policy }).then(
      ({ expiresAt }) => expiresAt,
    );
  }

  /**
   * Forgets what the key used. Says whether there was anything to forget. Reservations stay open, unless `reservations`
   * says to drop them.
   */
  async reset(key: string, options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    const { reservations } = copiedOptions(options, ["reservations"]);
    if (reservations !== undefined && typeof reservations !== "boolean")
      throw refused("invalid_option", "reservations", reservations, "a boolean");
    return (await this.#ask<{ reset: boolean }>("reset", { key, reservations })).reset;
  }

  async #decision(operation: string, key: string, cost: Costs): Promise<Decision> {
    const copy = copiedCosts(cost);
    checkKey(key);
    try {
      const leased = operation === "hit" ? this.#leased?.hit(key, copy) : undefined;
      return await (leased ?? this.#ask(operation, { key, cost: copy }).then(decisionOf));
    } catch (error) {
      return this.#without(error);
    }
  }

  /** The decision when there is none, or the error. */
  #without(error: unknown): Decision {
    const unanswered = error instanceof TollgateError && error.code === "unanswered";
    if (this.#onError === "throw" || !unanswered) throw error;
    return without(this.#onError === "allow");
  }

  /** What a reservation needs of the limiter. */
  readonly #settling: AsyncSettling = {
    settle: (id, used) => this.settle(id, used),
    extendUntil: async (id, ttl) => {
      checkTtl(ttl);
      const { settlement, expiresAt } = await this.#onReservation("extend", id, { ttl });
      return expiresAt ?? (settlement as "expired" | "closed");
    },
    settleLater: (key, id) => this.#unsettled.add(key, id),
  };

  async #onReservation(
    operation: string,
    id: string,
    more: Readonly<Record<string, unknown>>,
  ): Promise<{ settlement: Settlement | Extension; expiresAt?: number }> {
    if (typeof id !== "string" || id.length > longestId)
      throw refused("invalid_reservation", "id", id, reservationText);
    return (await this.#batches.ask(operation, { policy: this.#policy, id, ...more })) as never;
  }

  async #ask<Answer = unknown>(
    operation: string,
    { key, ...rest }: { key: string; [name: string]: unknown },
  ): Promise<Answer> {
    checkKey(key);
    // In JSON, what is no number may pass for one that was left out.
    if ("count" in rest && !Number.isFinite(rest["count"])) throw wrongAmount("count", rest["count"]);
    return (await this.#batches.ask(operation, { policy: this.#policy, key, ...rest })) as Answer;
  }
}

/** Sent along, a key that is far too long would have the whole batch refused. The Worker counts bytes. */
function checkKey(key: unknown): void {
  if (typeof key !== "string" || key.length > 1024) throw refused("invalid_key", "key", key, keyAccepts);
}

/** A reservation in JSON, where what a denied one does not have is null. */
interface WireReservation {
  readonly decision: unknown;
  readonly id: string | null;
  readonly expiresAt: number | null;
}

/** A key of 1024 characters, and what stands before it in an id. */
const longestId = 1024 + 64;

function checkTtl(ttl: unknown): void {
  if (milliseconds(ttl) === undefined) throw refused("invalid_option", "ttl", ttl, ttlExpected());
}

/** The decision when there is none. */
const without = (allowed: boolean): Decision => ({
  allowed,
  count: 0,
  limit: 0,
  remaining: 0,
  retryAfter: 0,
  resetAfter: 0,
  policy: "",
  violated: [],
  reason: "error",
});

const optionNames = ["url", "token", "policy", "timeout", "onError", "fetch", "leases"];

/** Returns how long leases last, in milliseconds; `undefined` if there are none. */
function readLeases(leases: unknown): number | undefined {
  if (leases === undefined || leases === false) return undefined;
  if (leases === true) return leaseTtl.byDefault;
  if (!isRecord(leases))
    throw refused("invalid_option", "leases", leases, 'true, false, or an object such as { ttl: "2s" }');
  const { ttl = leaseTtl.byDefault } = copiedOptions(leases as LeaseOptions, ["ttl"]);
  const time = milliseconds(ttl);
  if (time !== undefined && time <= leaseTtl.max) return time;
  throw refused("invalid_option", "leases.ttl", ttl, fill(leaseTtlText, { forms: durationFormsText }));
}

function address(url: string | URL): string {
  const { href, protocol } = URL.canParse(String(url)) ? new URL(url) : { href: "", protocol: "" };
  if (protocol === "https:" || protocol === "http:") return href.replace(/\/+$/, "");
  throw refused("invalid_option", "url", url, 'an address such as "https://limits.example.com/_tollgate"');
}

function checkPolicy(policy: unknown): void {
  const names: unknown[] = Array.isArray(policy) ? policy : [policy];
  if (names.length > 0 && names.every((name) => typeof name === "string" && name !== "")) return;
  throw refused(
    "invalid_option",
    "policy",
    policy,
    "the name of one of the Worker's policies, or a list of names",
  );
}
