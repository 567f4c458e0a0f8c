import { checkFunctions, checkNames, copiedOptions } from "../checks.ts";
import { invalidField, keyAccepts, TollgateError } from "../errors/error.ts";
import { errorDecision } from "../errors/error-decision.ts";
import { AsyncPublisher } from "../events/async-publisher.ts";
import type { OnDecision } from "../events/messages.ts";
import { copiedParts, type KeyField, type RuleParts } from "../http/rule-key.ts";
import type { AsyncLimiter } from "../limiter/async-limiter.ts";
import type { UndoableHit } from "../limiter/undo.ts";
import { copiedCosts, copiedUse } from "../policy/copied-costs.ts";
import { isRecord } from "../policy/costs.ts";
import { milliseconds, ttlExpected } from "../policy/durations.ts";
import { AsyncReservation, type AsyncSettling } from "../reservation/async-reservation.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  KeyException,
  Policies,
  Settlement,
} from "../types.ts";
import { leaseTtl, leaseTtlText, reservationText } from "../wasm/generated.ts";
import { Batches } from "./batches.ts";
import { decisionOf } from "./decision.ts";
import { LeasedHits } from "./leased-hits.ts";
import { RemoteKey } from "./remote-key.ts";

/** Options of a limiter over a Worker. */
export interface RemoteOptions {
  /** The Worker's address with its prefix: `https://limits.example.com/_tollgate`. */
  readonly url: string | URL;
  /** The token of the Worker's HTTP API. */
  readonly token: string;
  /** The name of one of the Worker's policies, or the names of several that are one decision. */
  readonly policy: string | readonly string[];
  /** How long a request may take: milliseconds, or a string such as `"2s"`, the default. */
  readonly timeout?: Duration | undefined;
  /**
   * The result of `hit`, `peek` and `reserve` without a response: an error (the default), or a decision with the reason
   * `"error"`.
   */
  readonly onError?: "allow" | "deny" | "throw" | undefined;
  /** The `fetch` to use, for instance that of a service binding. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
  /**
   * Whether hits on a hot key are allowed from a lease: an amount that the Worker reserves for this limiter, which spends
   * it without requests and reports it later. The fleet never admits more than without leases. By default every hit is
   * sent.
   */
  readonly leases?: boolean | LeaseOptions | undefined;
  /** Called with every decision of `hit`, `reserve` and `hitAll`, after it was made. What it throws is only logged. */
  readonly onDecision?: OnDecision | undefined;
}

/** Options for leases. */
export interface LeaseOptions {
  /** How long a lease lasts; a second by default, at most ten. */
  readonly ttl?: Duration | undefined;
}

/** Options of a reservation. */
export interface RemoteReserveOptions {
  /** How long it lasts; by default the `ttl` of a concurrency policy, or one minute. At most a day. */
  readonly ttl?: Duration | undefined;
  /** Not accepted: the numbers are those of the Worker. */
  readonly policies?: undefined;
}

/**
 * A limiter whose keys are in a Tollgate Worker: one budget for a whole fleet. The same methods as `RateLimiter`,
 * asynchronous. Operations of one tick and kind share a request.
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
 * `ofRule` reaches the key by which a rule of the gateway counts, for instance to unblock a visitor:
 *
 * @example
 * ```ts
 * import { RemoteLimiter } from "tollgate/client";
 *
 * const [url, token] = ["https://limits.example.com/_tollgate", process.env.TOLLGATE_TOKEN ?? ""];
 * const limiter = new RemoteLimiter({ url, token, policy: "login" });
 * await limiter.ofRule("ip=192.0.2.7").reset();
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
export class RemoteLimiter implements AsyncLimiter {
  /** @internal */
  readonly publisher: AsyncPublisher;
  readonly #options: RemoteOptions;
  #batches: Batches;
  #policy: string | readonly string[];
  #leasedHits: LeasedHits | undefined;
  #onError: "allow" | "deny" | "throw";

  constructor(options: RemoteOptions) {
    checkNames(options, optionNames);
    checkFunctions(options, ["fetch", "onDecision"]);
    this.#options = { ...options };
    const { url, token, policy, timeout = 2_000, onError = "throw" } = options;
    // The error does not show the value: it may be another secret.
    if (typeof token !== "string" || !/^[!-~]+$/.test(token))
      throw new TollgateError(
        "invalid_option",
        "token is required (the TOLLGATE_TOKEN of the Worker: printable ASCII, no spaces)",
      );
    checkPolicy(policy);
    if (!["allow", "deny", "throw"].includes(onError))
      throw invalidField("invalid_option", "onError", onError, '"allow", "deny" or "throw"');
    const time = milliseconds(timeout);
    if (time === undefined || time >= 2 ** 31)
      throw invalidField("invalid_option", "timeout", timeout, "a duration of at most 2147483647 ms");
    const request = options.fetch ?? ((request: Request) => fetch(request));
    this.#batches = new Batches(address(url), token, time, request);
    this.publisher = new AsyncPublisher("remote", options.onDecision, this.#batches.outage);
    this.#policy = policy;
    this.#onError = onError;
    const ttl = readLeases(options.leases);
    if (ttl !== undefined)
      this.#leasedHits = new LeasedHits(
        ttl,
        [policy].flat(),
        (operation, item) => this.#send(operation, item),
        (decision) => this.publisher.local(decision),
      );
  }

  /**
   * The names of the policies.
   * @internal
   */
  get policyNames(): readonly string[] {
    return [this.#policy].flat();
  }

  /**
   * Returns a limiter with the Worker's policies of these names, which sends its requests together with this one's.
   * @internal
   */
  sibling(policies: Policies): RemoteLimiter {
    const policy = [policies].flat().map(({ name, algorithm }) => name ?? algorithm);
    const made = new RemoteLimiter({ ...this.#options, policy });
    made.#batches = this.#batches;
    made.publisher.outage = this.#batches.outage;
    return made;
  }

  /**
   * Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name. Only
   * hits with one number can use a lease.
   */
  async hit(key: string, cost: Costs = 1): Promise<Decision> {
    const named = keyField(key);
    if (!this.publisher.isHeard) return this.#decision("hit", named, cost);
    const hit = () => this.#decision("hit", named, cost);
    return this.publisher.awaited("hit", key, cost, hit, (decision) => decision);
  }

  /**
   * Decides a hit of a decision over several keys.
   * @internal
   */
  async hitUndoable(key: string, cost: Costs = 1): Promise<UndoableHit> {
    const copy = copiedCosts(cost);
    const named = keyField(key);
    try {
      const fields = { ...named, cost: copy, undoable: true };
      const { decision, id } = await this.#send<JsonHit>("hit", fields);
      const undo =
        typeof id === "string" ? () => this.#send("undo", { ...named, cost: copy, id }) : undefined;
      return { decision: decisionOf(decision), undo };
    } catch (error) {
      return { decision: this.#decideByOnError(error), undo: undefined };
    }
  }

  /** Returns what a hit would return. Changes no state. */
  async peek(key: string, cost: Costs = 1): Promise<Decision> {
    return this.#decision("peek", keyField(key), cost);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. The default `ttl` is that of a concurrency policy, or one minute.
   */
  reserve(key: string, cost: Costs = 1, options: RemoteReserveOptions = {}): Promise<AsyncReservation> {
    const reserve = () => this.#reserve(key, cost, options);
    if (!this.publisher.isHeard) return reserve();
    return this.publisher.awaited("reserve", key, cost, reserve, ({ decision }) => decision);
  }

  async #reserve(key: string, cost: Costs, options: RemoteReserveOptions): Promise<AsyncReservation> {
    const { ttl, policies } = copiedOptions(options, ["ttl", "policies"]);
    if (policies !== undefined) throw unacceptedPolicies(policies);
    if (ttl !== undefined) checkTtl(ttl);
    const copy = copiedCosts(cost);
    const named = keyField(key);
    try {
      const result = await this.#send<JsonReservation>("reserve", { ...named, cost: copy, ttl });
      const { id, expiresAt } = result;
      return new AsyncReservation(this.#settling, key, decisionOf(result.decision), id ?? "", expiresAt ?? 0);
    } catch (error) {
      return new AsyncReservation(this.#settling, key, this.#decideByOnError(error), "", 0);
    }
  }

  /**
   * Closes a reservation by its id and charges the used amount, by default all of it. Returns `"settled"`, `"expired"`
   * (it had been charged in full) or `"closed"` (it had been settled).
   */
  async settle(id: string, used?: Costs): Promise<Settlement> {
    const copy = used === undefined ? undefined : copiedUse(used);
    return (await this.#sendById("settle", id, { used: copy })).settlement as Settlement;
  }

  /** Closes a reservation by its id without a charge. */
  async cancel(id: string): Promise<Settlement> {
    return (await this.#sendById("cancel", id, {})).settlement as Settlement;
  }

  /** Moves the end of a reservation, by its id, to `ttl` from now. */
  async extend(id: string, ttl: Duration): Promise<Extension> {
    checkTtl(ttl);
    return (await this.#sendById("extend", id, { ttl })).settlement as Extension;
  }

  /**
   * Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. With several
   * policies, `policy` is the name of the one to charge.
   */
  async inc(key: string, cost = 1, policy?: string): Promise<number> {
    return this.#at(keyField(key)).inc(cost, policy);
  }

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  async set(key: string, count: number, policy?: string): Promise<number> {
    return this.#at(keyField(key)).set(count, policy);
  }

  /** Returns the key's count. */
  async get(key: string, policy?: string): Promise<number> {
    return this.#at(keyField(key)).get(policy);
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  async expiresAt(key: string, policy?: string): Promise<number> {
    return this.#at(keyField(key)).expiresAt(policy);
  }

  /**
   * Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end, in milliseconds
   * since the epoch. Among several bans, `policy` is the name of one.
   */
  async ban(key: string, length: Duration, policy?: string): Promise<number> {
    return this.#at(keyField(key)).ban(length, policy);
  }

  /** Lifts the ban of a key and forgets its past ones. Returns true if one held. */
  async unban(key: string, policy?: string): Promise<boolean> {
    return this.#at(keyField(key)).unban(policy);
  }

  /**
   * Gives the key other numbers, or allows or denies it, until a time; null lifts the exception that it has. Returns when it
   * ends, or would have ended; 0 if there was none.
   *
   * @example
   * ```ts
   * import { RemoteLimiter } from "tollgate/client";
   *
   * const [url, token] = ["https://limits.example.com/_tollgate", process.env.TOLLGATE_TOKEN ?? ""];
   * const limiter = new RemoteLimiter({ url, token, policy: "api" });
   * await limiter.except("customer:42", { api: { limit: 1_000 } }, { for: "7d" });
   * ```
   */
  except(key: string, exception: Exception, end: ExceptionEnd): Promise<number>;
  except(key: string, exception: null): Promise<number>;
  async except(key: string, exception: Exception | null, end?: ExceptionEnd): Promise<number> {
    return this.#at(keyField(key)).except(exception, end);
  }

  /** Returns the exception of the key that is in force; null if there is none. */
  async exceptions(key: string): Promise<KeyException | null> {
    return this.#at(keyField(key)).exceptions();
  }

  /**
   * Removes the key's states, and returns true if there were any. Reservations stay open, unless `reservations` is true.
   */
  async reset(key: string, options: { readonly reservations?: boolean | undefined } = {}): Promise<boolean> {
    return this.#at(keyField(key)).reset(options);
  }

  /**
   * Returns the operations on the key by which a rule of the gateway counts, given by its parts. A method of its own, so
   * that no key that comes from a request can name the key of a rule.
   */
  ofRule(parts: RuleParts): RemoteKey {
    return this.#at({ parts: copiedParts(parts) });
  }

  #at(named: KeyField): RemoteKey {
    return new RemoteKey(
      (operation, fields) => this.#send(operation, { ...named, ...fields }),
      (cost) => this.#decision("peek", named, cost),
    );
  }

  async #decision(operation: "hit" | "peek", named: KeyField, cost: Costs): Promise<Decision> {
    const copy = copiedCosts(cost);
    try {
      const leased =
        operation === "hit" && "key" in named ? this.#leasedHits?.hit(named.key, copy) : undefined;
      return await (leased ?? this.#send(operation, { ...named, cost: copy }).then(decisionOf));
    } catch (error) {
      return this.#decideByOnError(error);
    }
  }

  /** Returns the decision by `onError` for a request without a response. Throws the error otherwise. */
  #decideByOnError(error: unknown): Decision {
    const isUnanswered = error instanceof TollgateError && error.code === "unanswered";
    if (this.#onError === "throw" || !isUnanswered) throw error;
    return this.publisher.without(errorDecision(this.#onError === "allow"), error);
  }

  /** The methods for reservations. */
  readonly #settling: AsyncSettling = {
    settle: (id, used) => this.settle(id, used),
    extendUntil: async (id, ttl) => {
      checkTtl(ttl);
      const { settlement, expiresAt } = await this.#sendById("extend", id, { ttl });
      return expiresAt ?? (settlement as "expired" | "closed");
    },
  };

  /** Sends an operation on a reservation. */
  async #sendById(
    operation: string,
    id: string,
    fields: Readonly<Record<string, unknown>>,
  ): Promise<{ settlement: Settlement | Extension; expiresAt?: number }> {
    if (typeof id !== "string" || id.length > maxIdLength)
      throw invalidField("invalid_reservation", "id", id, reservationText);
    return (await this.#batches.add(operation, { policy: this.#policy, id, ...fields })) as never;
  }

  /** Sends an operation on a key. */
  async #send<Result = unknown>(
    operation: string,
    fields: KeyField & { readonly [name: string]: unknown },
  ): Promise<Result> {
    return (await this.#batches.add(operation, { policy: this.#policy, ...fields })) as Result;
  }
}

/**
 * Returns the error for policies of a call.
 * @internal
 */
export const unacceptedPolicies = (policies: unknown): TollgateError =>
  invalidField("invalid_option", "policies", policies, "undefined: the numbers are those of the Worker");

/** Checks a key, since the Worker would reject the whole batch for one that is far too long. The Worker counts bytes. */
function keyField(key: unknown): { readonly key: string } {
  if (typeof key !== "string" || key.length > 1024) throw invalidField("invalid_key", "key", key, keyAccepts);
  return { key };
}

/** A hit that can be undone, in JSON. One that charged nothing has null for its id. */
interface JsonHit {
  readonly decision: unknown;
  readonly id: string | null;
}

/** A reservation in JSON. A denied one has null for its id and end. */
interface JsonReservation {
  readonly decision: unknown;
  readonly id: string | null;
  readonly expiresAt: number | null;
}

/** The longest id: a key of 1024 characters and the part before it. */
const maxIdLength = 1024 + 64;

function checkTtl(ttl: unknown): void {
  if (milliseconds(ttl) === undefined) throw invalidField("invalid_option", "ttl", ttl, ttlExpected());
}

const optionNames = ["url", "token", "policy", "timeout", "onError", "fetch", "leases", "onDecision"];

/** Checks the option `leases`, and returns their duration in milliseconds; `undefined` if there are none. */
function readLeases(leases: unknown): number | undefined {
  if (leases === undefined || leases === false) return undefined;
  if (leases === true) return leaseTtl.byDefault;
  if (!isRecord(leases))
    throw invalidField("invalid_option", "leases", leases, 'true, false, or an object such as { ttl: "2s" }');
  const { ttl = leaseTtl.byDefault } = copiedOptions(leases as LeaseOptions, ["ttl"]);
  const time = milliseconds(ttl);
  if (time !== undefined && time <= leaseTtl.max) return time;
  throw invalidField("invalid_option", "leases.ttl", ttl, leaseTtlText);
}

/** Checks the option `url`, and returns it without slashes at its end. */
function address(url: string | URL): string {
  const { href = "", pathname } = URL.canParse(String(url)) ? new URL(url) : ({} as Partial<URL>);
  // Without the prefix, the token would go to the origin.
  if (/^https?:/.test(href) && pathname !== "/" && !href.includes("@")) return href.replace(/\/+$/, "");
  throw invalidField(
    "invalid_option",
    "url",
    String(url).replace(/\/\/.*@/, "//…@"),
    'an address with its prefix and without a password, such as "https://limits.example.com/_tollgate"',
  );
}

function checkPolicy(policy: unknown): void {
  const names: unknown[] = Array.isArray(policy) ? policy : [policy];
  if (names.length > 0 && names.every((name) => typeof name === "string" && name !== "")) return;
  throw invalidField(
    "invalid_option",
    "policy",
    policy,
    "the name of one of the Worker's policies, or a list of names",
  );
}
