import { before } from "../deadline.ts";
import { TollgateError } from "../errors/error.ts";
import { listened } from "../events/listened.ts";
import type { Outage } from "../events/outage.ts";
import type { AddressRanges } from "../http/ranges.ts";
import { RateLimiter } from "../limiter/limiter.ts";
import type { Costs, Decision, Key, Policies } from "../types.ts";
import { after, isPromise } from "./after.ts";
import { addressOfClient, keyOfClient, type ReadClient } from "./client.ts";
import { closedDecision, closedPolicy } from "./closed.ts";
import { checkCosts } from "./costs.ts";
import { publishError, published } from "./events.ts";
import { checkedKey } from "./keys.ts";
import { type ReadGuardOptions, readGuardOptions } from "./options.ts";
import { type KeyAndCost, type Limit, readLimits, sourceOfLimits } from "./several-limits.ts";
import {
  canReserve,
  isLimiter,
  isNamespace,
  noReservations,
  type SettleableDecision,
  type Source,
  sourceOf,
} from "./source.ts";
import { Sources } from "./sources.ts";
import type { Awaitable, ErrorVerdict, GuardLimiter, GuardOptions, LimitOptions } from "./types.ts";
import { bodyOf, fieldsOf, invalidKey, none, passed, unanswered, type Verdict } from "./verdict.ts";
import { Warnings, warnOnce } from "./warnings.ts";

/** The adapter of a framework. */
export interface Adapter<Request> {
  readonly name: string;
  /** Reads the client of a request. `platform` is the server's further argument, if it has one. */
  client<Result>(request: Request, read: ReadClient<Result>, platform?: unknown): Result;
}

const invalidKeys = new Warnings();
const failedCalls = new Warnings();
const failedCharges = new Warnings();

type ChargeOf = (response: unknown) => Awaitable<Costs>;

/** A decision, its source unless none was asked, and the reservation if there is one. */
interface SourcedDecision {
  readonly source: Source | undefined;
  readonly decision: Decision;
  readonly reservation: SettleableDecision | undefined;
}

type UseDecision = (sourced: SourcedDecision) => Verdict;

/** Decides about requests, for any framework. */
export class Guard<Request, Arguments extends readonly unknown[], Response> {
  readonly options: ReadGuardOptions<Request, Arguments, Response>;
  readonly #adapter: Adapter<Request>;
  readonly #sources: Sources;
  readonly #limits: readonly Limit<Request>[] | undefined;
  readonly #fallback: Source | undefined;

  constructor(options: GuardOptions<Request, Arguments, Response>, adapter: Adapter<Request>) {
    this.options = readGuardOptions(options);
    this.#adapter = adapter;
    const { policy, limiter, charge, fallback, policyFor, ban } = this.options;
    this.#limits = readLimits(options);
    this.#sources = new Sources(policy, limiter, policyFor !== undefined, ban !== undefined);
    this.#fallback = fallbackOf(fallback);
    if (
      charge !== "all" &&
      [limiter, fallback].some(
        (one) => isLimiter(one) && !isNamespace(one) && !canReserve(one as GuardLimiter),
      )
    )
      throw noReservations();
  }

  /** Decides about a request. */
  check(request: Request, platform?: unknown): Awaitable<Verdict> {
    const { skip } = this.options;
    if (skip === undefined) return this.#keyed(request, platform);
    if ("ranges" in skip) {
      const address = this.#adapter.client(request, addressOfClient, platform);
      return address !== undefined && (skip as AddressRanges)(address)
        ? passed
        : this.#keyed(request, platform);
    }
    const skips = () => skip(request);
    return this.#call("skip", request, skips, (isSkipped) =>
      isSkipped ? passed : this.#keyed(request, platform),
    );
  }

  #keyed(request: Request, platform: unknown): Awaitable<Verdict> {
    if (this.#limits !== undefined) return this.#limited(request, platform, this.#limits, []);
    const { key, cost } = this.options;
    return this.#keyAndCost(request, platform, key, cost, (key, cost) => this.#planned(request, key, cost));
  }

  /** Finds the keys and costs of the limits that are left, and decides about all. */
  #limited(
    request: Request,
    platform: unknown,
    limits: readonly Limit<Request>[],
    found: readonly KeyAndCost[],
  ): Awaitable<Verdict> {
    const limit = limits[found.length];
    if (limit === undefined) {
      const [[key, cost]] = found as readonly [KeyAndCost];
      return this.#ask(request, key, cost, sourceOfLimits(limits, found));
    }
    return this.#keyAndCost(request, platform, limit.key, limit.cost, (key, cost) =>
      this.#limited(request, platform, limits, [...found, [key, cost]]),
    );
  }

  #keyAndCost(
    request: Request,
    platform: unknown,
    key: LimitOptions<Request>["key"],
    cost: Limit<Request>["cost"],
    next: (key: Key, cost: Costs) => Awaitable<Verdict>,
  ): Awaitable<Verdict> {
    const withKey = (key: Key) => this.#withCost(request, cost, (cost) => next(key, cost));
    if (key === undefined) return withKey(this.#adapter.client(request, keyOfClient, platform));
    const { longKeys } = this.options;
    const checked = () => after(key(request), (key) => checkedKey(key, longKeys));
    return this.#call("key", request, checked, withKey);
  }

  #withCost(
    request: Request,
    cost: Limit<Request>["cost"],
    next: (cost: Costs) => Awaitable<Verdict>,
  ): Awaitable<Verdict> {
    if (typeof cost !== "function") return next(cost);
    const checked = () =>
      after(cost(request), (cost) => {
        checkCosts(cost);
        return cost;
      });
    return this.#call("cost", request, checked, next);
  }

  #planned(request: Request, key: Key, cost: Costs): Awaitable<Verdict> {
    const { policyFor } = this.options;
    if (policyFor === undefined) return this.#ask(request, key, cost, this.#source(request, undefined));
    const source = () =>
      after(policyFor(request), (policies) => this.#sourceOf(request, policies ?? undefined));
    return this.#call("policyFor", request, source, (source) =>
      typeof source === "string" ? this.#closed(request, source) : this.#ask(request, key, cost, source),
    );
  }

  /** Returns the source of a request with policies of its own, or the name of one with a limit of 0. */
  #sourceOf(request: Request, policies: Policies | undefined): Source | string {
    try {
      return this.#source(request, policies);
    } catch (error) {
      // Only now, since each field of the policies is read once.
      const closed = closedPolicy(policies);
      if (closed === undefined) throw error;
      return closed;
    }
  }

  /** Calls a function of the options, and continues with its value. If it fails or is late, the request does not go on. */
  #call<Value>(
    name: string,
    request: Request,
    work: () => Awaitable<Value>,
    next: (value: Value) => Awaitable<Verdict>,
  ): Awaitable<Verdict> {
    const failed = (error: unknown) => this.#callFailed(name, request, error);
    let value: Awaitable<Value>;
    try {
      value = work();
    } catch (error) {
      return failed(error);
    }
    if (!isPromise(value)) return next(value);
    const { timeout } = this.options;
    const late = () => new TollgateError("unanswered", `${name} took longer than ${timeout} ms`);
    return before(value, timeout, late).then(next, failed);
  }

  /** Decides about a request after a function of the options failed: a client may have caused it, so `onError` allows none. */
  #callFailed(name: string, request: Request, error: unknown): Awaitable<Verdict> {
    const { onError } = this.options;
    if (name === "key" && (error as Partial<TollgateError> | null)?.code === "invalid_key") {
      invalidKeys.warn(`a request gets a 400, since its key is invalid: ${error}`);
      return invalidKey;
    }
    failedCalls.warn(`${name} failed, so the request does not go on: ${error}`);
    return after(typeof onError === "function" ? onError(error, request) : onError, (verdict) => {
      if (verdict === "throw") throw error;
      return verdict === "allow" && typeof onError === "function" ? passed : unanswered;
    });
  }

  /** Denies a request under a limit of 0. */
  #closed(request: Request, policy: string): Verdict {
    return this.#verdict(request, {
      source: undefined,
      decision: closedDecision(policy),
      reservation: undefined,
    });
  }

  #source(request: Request, policies: Policies | undefined): Source {
    const { limiter } = this.options;
    return this.#sources.of(typeof limiter === "function" ? limiter(request) : limiter, policies);
  }

  #ask(request: Request, key: Key, cost: Costs, source: Source): Awaitable<Verdict> {
    const use = (sourced: SourcedDecision) => this.#verdict(request, sourced);
    const useFallback = (error: unknown) => (sourced: SourcedDecision) => {
      source.outage.failed(error, "fallback");
      return use(sourced);
    };
    const fallback = this.#fallback;
    const giveUp = (failed: Source) => (error: unknown) =>
      this.#giveUp(request, failed, source.outage, key, error);
    const attempt = (source: Source, use: UseDecision, fail: (error: unknown) => Awaitable<Verdict>) =>
      this.#attempt(() => this.#decide(request, source, key, cost), use, fail);
    if (fallback === undefined) return attempt(source, use, giveUp(source));
    return attempt(source, use, (error) => {
      this.#publish(request, source, key, error, "fallback");
      return attempt(fallback, useFallback(error), giveUp(fallback));
    });
  }

  /** Decides by `decide`, and calls `fail` if it fails or is late. */
  #attempt(
    decide: () => Awaitable<SourcedDecision>,
    use: UseDecision,
    fail: (error: unknown) => Awaitable<Verdict>,
  ): Awaitable<Verdict> {
    const failed = (error: unknown) => {
      // Bad input is not a failure of the limiter: a client could send it to pass the limit.
      if (isBadInput(error)) throw error;
      return fail(error);
    };
    let sourced: Awaitable<SourcedDecision>;
    try {
      sourced = decide();
    } catch (error) {
      return failed(error);
    }
    if (!isPromise(sourced)) return use(sourced);
    // A reservation that comes too late is of no use to the request.
    const { timeout } = this.options;
    const late = () =>
      new TollgateError(
        "unanswered",
        `the limiter did not respond within ${timeout} ms; see docs/frameworks.md`,
      );
    return before(sourced, timeout, late, ({ reservation }) => close(reservation?.cancel)).then(use, failed);
  }

  /** Whether every request is charged at once, without a reservation. */
  #isCharged(source: Source): boolean {
    return this.options.charge === "all" && !source.isReserveOnly;
  }

  /** Decides by a source, with a reservation if the charge depends on the response. */
  #decide(request: Request, source: Source, key: Key, cost: Costs): Awaitable<SourcedDecision> {
    const adapter = this.#adapter.name;
    if (this.#isCharged(source))
      return published({ adapter, request, source, operation: "hit", key, cost }, () =>
        after(source.hit(key, cost), (decision) => ({ source, decision, reservation: undefined })),
      );
    return published({ adapter, request, source, operation: "reserve", key, cost }, () =>
      after(source.reserve(key, cost), (reservation) => ({
        source,
        decision: reservation.decision,
        reservation,
      })),
    );
  }

  #verdict(request: Request, { source, decision, reservation }: SourcedDecision): Verdict {
    if (source?.isWatched) source.outage.responded();
    // The numbers of a decision that was made without the store mean nothing.
    if (decision.reason === "error") return decision.allowed ? passed : unanswered;
    const { onDecision } = this.options;
    if (onDecision !== undefined) listened(() => onDecision(decision, request));
    const { allowed } = decision;
    const passes = allowed || this.options.onDenied === "allow";
    return {
      passes,
      decision,
      fields: source === undefined ? none : fieldsOf(decision, source, this.options.headers),
      status: 429,
      body: passes ? "" : bodyOf(decision, source),
      finish: allowed && reservation !== undefined ? this.#finish(reservation) : undefined,
    };
  }

  /** Returns a function that closes a reservation once. A response that was cut short is charged. */
  #finish(reservation: SettleableDecision): NonNullable<Verdict["finish"]> {
    let isOpen = true;
    return (isSuccess, sent) => {
      if (!isOpen) return undefined;
      isOpen = false;
      const { charge } = this.options;
      if (typeof charge === "function" && isSuccess !== undefined)
        return after(this.#chargeOf(charge as ChargeOf, sent), (used) =>
          close(() => reservation.settle(used)),
        );
      const isFree = charge !== "all" && isSuccess === (charge === "failures");
      return close(isFree ? reservation.cancel : () => reservation.settle());
    };
  }

  /** Returns the charge of a response; undefined, for what was reserved, if the function failed. */
  #chargeOf(charge: ChargeOf, sent?: () => unknown): Awaitable<Costs | undefined> {
    const failed = (error: unknown) => {
      failedCharges.warn(`charge failed, so what was reserved is charged: ${error}`);
      return undefined;
    };
    const checked = (used: Costs) => {
      checkCosts(used);
      return used;
    };
    try {
      const used = charge(sent?.());
      if (!isPromise(used)) return checked(used);
      const { timeout } = this.options;
      const late = () => new TollgateError("unanswered", `it took longer than ${timeout} ms`);
      return before(used, timeout, late).then(checked).catch(failed);
    } catch (error) {
      return failed(error);
    }
  }

  #giveUp(request: Request, source: Source, outage: Outage, key: Key, error: unknown): Awaitable<Verdict> {
    const { onError = defaultOnError(this.options.charge, source) } = this.options;
    return after(typeof onError === "function" ? onError(error, request) : onError, (verdict) => {
      this.#publish(request, source, key, error, verdict);
      if (verdict !== "allow" && verdict !== "deny") throw error;
      outage.failed(error, verdict);
      return verdict === "allow" ? passed : unanswered;
    });
  }

  #publish(
    request: Request,
    source: Source,
    key: Key,
    error: unknown,
    verdict: ErrorVerdict | "fallback",
  ): void {
    const adapter = this.#adapter.name;
    const { limiter } = source;
    const operation = this.#isCharged(source) ? "hit" : "reserve";
    publishError({ limiter, operation, key, error, verdict, adapter, request });
  }
}

/** Returns what happens by default when a limiter fails. Where it guards a secret, an outage must not open it to guesses. */
const defaultOnError = (charge: unknown, { policies }: Source): ErrorVerdict =>
  charge === "failures" || policies.some(({ algorithm }) => algorithm === "ban") ? "deny" : "allow";

function fallbackOf(fallback: GuardOptions<never, never, never>["fallback"]): Source | undefined {
  if (fallback === undefined) return undefined;
  const limiter = isLimiter(fallback) ? fallback : new RateLimiter(fallback);
  return sourceOf(limiter, limiter.policies ?? []);
}

/** Returns whether an error is of bad input, by name and code: those of objects lose their class on the way. */
function isBadInput(error: unknown): boolean {
  const { name, code } = (error ?? {}) as Partial<TollgateError>;
  const badInput = /^(invalid_(?!state)|unknown_|policy_mismatch|reserve_only|ban_only)/;
  return name === "TollgateError" && badInput.test(code ?? "");
}

/** Closes a reservation. An error is only logged, since the request is finished. */
function close(closing: (() => unknown) | undefined): unknown {
  try {
    const closed = closing?.();
    return isPromise(closed) ? closed.then(undefined, warnUnsettled) : undefined;
  } catch (error) {
    return warnUnsettled(error);
  }
}

const warnUnsettled = (error: unknown) =>
  warnOnce("settle", `a reservation could not be settled, so it is charged when it ends: ${error}`);
