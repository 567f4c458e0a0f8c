import { checkFunctions, checkNames, copiedOptions } from "../checks.ts";
import { invalidField, keyAccepts, TollgateError } from "../errors/error.ts";
import { errorDecision } from "../errors/error-decision.ts";
import { AsyncPublisher } from "../events/async-publisher.ts";
import type { OnDecision } from "../events/messages.ts";
import { copiedParts, type KeyField, type RuleParts } from "../http/rule-key.ts";
import { LimiterElsewhere } from "../limiter/limiter-elsewhere.ts";
import type { Excepting, KeyOperation, ReservationOperation } from "../limiter/operation.ts";
import { copiedCosts, copiedUse } from "../policy/copied-costs.ts";
import { isRecord } from "../policy/costs.ts";
import { milliseconds } from "../policy/durations.ts";
import type { Costs, Decision, Duration, Policies, Settlement } from "../types.ts";
import { leaseTtl, leaseTtlText, reservationText } from "../wasm/generated.ts";
import { Batches } from "./batches.ts";
import { decisionOf } from "./decision.ts";
import { LeasedHits } from "./leased-hits.ts";
import { performed, RemoteKey } from "./remote-key.ts";

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
export class RemoteLimiter extends LimiterElsewhere<RemoteReserveOptions> {
  readonly #options: RemoteOptions;
  #batches: Batches;
  #policy: string | readonly string[];
  #leasedHits: LeasedHits | undefined;

  constructor(options: RemoteOptions) {
    checkNames(options, optionNames);
    checkFunctions(options, ["fetch", "onDecision"]);
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
    const ttl = readLeases(options.leases);
    const decide = () => (onError === "throw" ? undefined : errorDecision(onError === "allow"));
    const batches = new Batches(address(url), token, time, request);
    super(new AsyncPublisher("remote", options.onDecision, batches.outage), { decide });
    this.#options = { ...options };
    this.#batches = batches;
    this.#policy = policy;
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

  /** @internal */
  override async decide(
    kind: "hit" | "peek",
    key: string,
    cost: Costs,
    policies: undefined,
  ): Promise<Decision> {
    if (policies !== undefined) throw unacceptedPolicies(policies);
    return this.#decide(kind, keyField(key), cost);
  }

  /** @internal */
  override async perform(key: string, operation: KeyOperation | Excepting): Promise<unknown> {
    const named = keyField(key);
    switch (operation.name) {
      case "hit": {
        const { cost, id, decision } = await this.#sendCosts<JsonHit>(named, {
          ...operation,
          undoable: true,
        });
        const undo = typeof id === "string" ? () => this.#send("undo", { ...named, cost, id }) : undefined;
        return { decision: decisionOf(decision), undo };
      }
      case "reserve": {
        const { decision, id, expiresAt } = await this.#sendCosts<JsonReservation>(named, operation);
        return { decision: decisionOf(decision), id: id ?? "", expiresAt: expiresAt ?? 0 };
      }
      default:
        return performed(operation, (name, fields) => this.#send(name, { ...named, ...fields }));
    }
  }

  /** @internal */
  override async close(id: string, operation: ReservationOperation): Promise<Settlement | number> {
    const { name, ...fields } = operation;
    if (typeof id !== "string" || id.length > maxIdLength)
      throw invalidField("invalid_reservation", "id", id, reservationText);
    const { used } = fields as { readonly used?: Costs };
    const item = used === undefined ? fields : { used: copiedUse(used) };
    const { settlement, expiresAt } = await this.#send<JsonSettlement>(name, { id, ...item });
    return name === "extend" && expiresAt !== undefined ? expiresAt : settlement;
  }

  /** @internal */
  override isFailure(error: unknown): boolean {
    return error instanceof TollgateError && error.code === "unanswered";
  }

  /**
   * Returns the operations on the key by which a rule of the gateway counts, given by its parts. A method of its own, so
   * that no key that comes from a request can name the key of a rule.
   */
  ofRule(parts: RuleParts): RemoteKey {
    const named = { parts: copiedParts(parts) };
    return new RemoteKey(
      (operation, fields) => this.#send(operation, { ...named, ...fields }),
      (cost) => this.#decide("peek", named, cost),
    );
  }

  async #decide(kind: "hit" | "peek", named: KeyField, cost: Costs): Promise<Decision> {
    const copy = copiedCosts(cost);
    const key = "key" in named ? named.key : "";
    try {
      const leased = kind === "hit" ? this.#leasedHits?.hit(key, copy) : undefined;
      return await (leased ?? this.#send(kind, { ...named, cost: copy }).then(decisionOf));
    } catch (error) {
      return this.decideWithout(kind, key, copy, error);
    }
  }

  /** Sends an operation with costs. Returns them with the result. */
  async #sendCosts<Result>(
    named: KeyField,
    { name, policies, ...fields }: Extract<KeyOperation, { policies: unknown }> & { undoable?: boolean },
  ): Promise<Result & { readonly cost: Costs }> {
    if (policies !== undefined) throw unacceptedPolicies(policies);
    const cost = copiedCosts(fields.cost);
    return { ...(await this.#send<Result>(name, { ...named, ...fields, cost })), cost };
  }

  /** Sends an operation. */
  async #send<Result = unknown>(
    operation: string,
    fields: Readonly<Record<string, unknown>>,
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

/** A closed or extended reservation in JSON. */
interface JsonSettlement {
  readonly settlement: Settlement;
  readonly expiresAt?: number;
}

/** The longest id: a key of 1024 characters and the part before it. */
const maxIdLength = 1024 + 64;

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
