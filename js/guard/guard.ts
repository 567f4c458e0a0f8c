import { problemBody, rateLimitHeaders } from "../headers.ts";
import { RateLimiter } from "../limiter.ts";
import { TollgateError } from "../tollgate-error.ts";
import type { Costs, Decision, Key } from "../types.ts";
import { after, before, isPromise } from "./after.ts";
import { publishDecision, publishError } from "./channels.ts";
import { inWords } from "./errors.ts";
import { type ReadGuardOptions, readGuardOptions } from "./options.ts";
import {
  canReserve,
  type Held,
  isLimiter,
  isNamespace,
  noReservations,
  type Source,
  sourceOf,
} from "./source.ts";
import { Sources } from "./sources.ts";
import type { Awaitable, ErrorVerdict, GuardOptions } from "./types.ts";
import { warnOnce } from "./warnings.ts";

/** The headers of a response, by their names. */
export type Fields = Readonly<Record<string, string>>;

/** What a guard decided about a request. */
export interface Verdict {
  /** Whether the request goes on. */
  readonly passes: boolean;
  /** The decision; undefined if the request was skipped or the limiter failed. */
  readonly decision: Decision | undefined;
  /** The headers of the response, whatever it is. */
  readonly fields: Fields;
  /** Status and body of the response to a request that does not go on. */
  readonly status: 429 | 503;
  readonly body: string;
  /**
   * To be called with whether the response was a success; undefined if nothing depends on it. Returns a promise where
   * that takes a while.
   */
  readonly finish: ((isSuccess: boolean | undefined) => unknown) | undefined;
}

/** What a framework's adapter tells the guard. */
export interface Adapter<Request> {
  readonly name: string;
  /** Returns the default key of a request, by what the server gave beside it where a request does not tell. */
  keyOf(request: Request, platform?: unknown): Key;
}

const none: Fields = {};
const passed: Verdict = {
  passes: true,
  decision: undefined,
  fields: none,
  status: 429,
  body: "",
  finish: undefined,
};
const unanswered: Verdict = {
  ...passed,
  passes: false,
  fields: { "Retry-After": "1" },
  status: 503,
  body: JSON.stringify({
    type: "about:blank",
    title: "The rate limiter did not answer",
    status: 503,
    reason: "error",
  }),
};

/** A decision, who made it, and what it set aside. */
interface Answer {
  readonly source: Source;
  readonly decision: Decision;
  readonly held: Held | undefined;
}

/** Decides about requests, for any framework. */
export class Guard<Request, Arguments extends readonly unknown[]> {
  readonly options: ReadGuardOptions<Request, Arguments>;
  readonly #adapter: Adapter<Request>;
  readonly #sources: Sources;
  readonly #fallback: Source | undefined;

  constructor(options: GuardOptions<Request, Arguments>, adapter: Adapter<Request>) {
    this.options = readGuardOptions(options);
    this.#adapter = adapter;
    const { policy, limiter, charge, fallback, policyFor } = this.options;
    this.#sources = new Sources(policy, limiter, policyFor !== undefined);
    this.#fallback = fallbackOf(fallback);
    if (
      charge !== "all" &&
      [limiter, fallback].some((one) => isLimiter(one) && !isNamespace(one) && !canReserve(one))
    )
      throw noReservations();
  }

  /** Decides about a request. Throws what the caller's own functions throw, and bad keys and costs. */
  check(request: Request, platform?: unknown): Awaitable<Verdict> {
    const { skip } = this.options;
    if (skip === undefined) return this.#keyed(request, platform);
    return after(skip(request), (isSkipped) => (isSkipped ? passed : this.#keyed(request, platform)));
  }

  #keyed(request: Request, platform: unknown): Awaitable<Verdict> {
    const { key, cost, policyFor } = this.options;
    return after(key === undefined ? this.#adapter.keyOf(request, platform) : key(request), (key) => {
      checkKey(key);
      return after(typeof cost === "function" ? cost(request) : cost, (cost) => {
        checkCosts(cost);
        if (policyFor === undefined) return this.#ask(request, key, cost, this.#source(request, undefined));
        return after(policyFor(request), (policies) =>
          this.#ask(request, key, cost, this.#source(request, policies)),
        );
      });
    });
  }

  #source(request: Request, policies: Parameters<Sources["of"]>[1]): Source {
    const { limiter } = this.options;
    return this.#sources.of(typeof limiter === "function" ? limiter(request) : limiter, policies);
  }

  #ask(request: Request, key: Key, cost: Costs, source: Source): Awaitable<Verdict> {
    const use = (answer: Answer) => this.#verdict(request, key, answer);
    const fallback = this.#fallback;
    const giveUp = (error: unknown) => this.#giveUp(request, key, error);
    if (fallback === undefined) return this.#attempt(source, key, cost, use, giveUp);
    return this.#attempt(source, key, cost, use, (error) => {
      this.#publish(request, key, error, "fallback");
      return this.#attempt(fallback, key, cost, use, giveUp);
    });
  }

  /** Asks a source, and goes on with `fail` if it fails or is late. */
  #attempt(
    source: Source,
    key: Key,
    cost: Costs,
    use: (answer: Answer) => Verdict,
    fail: (error: unknown) => Awaitable<Verdict>,
  ): Awaitable<Verdict> {
    const failed = (error: unknown) => {
      // Bad input is no failure of the limiter: to let it pass would open the gate to whoever sends it.
      if (isBadInput(error)) throw error;
      return fail(error);
    };
    let answer: Awaitable<Answer>;
    try {
      answer = this.#answer(source, key, cost);
    } catch (error) {
      return failed(error);
    }
    if (!isPromise(answer)) return use(answer);
    // What a late answer set aside serves no request any more.
    return before(answer, this.options.timeout, ({ held }) => close(held?.cancel)).then(use, failed);
  }

  /** Asks a source: with a reservation where the response decides whether the request is charged. */
  #answer(source: Source, key: Key, cost: Costs): Awaitable<Answer> {
    if (this.options.charge === "all" && !source.isHeld)
      return after(source.hit(key, cost), (decision) => ({ source, decision, held: undefined }));
    return after(source.reserve(key, cost), (held) => ({ source, decision: held.decision, held }));
  }

  #verdict(request: Request, key: Key, { source, decision, held }: Answer): Verdict {
    // A limiter that decided without its store says so; its numbers are none.
    if (decision.reason === "error") return decision.allowed ? passed : unanswered;
    publishDecision(this.#adapter.name, key, decision, request);
    this.options.onDecision?.(decision, request);
    const { allowed } = decision;
    const passes = allowed || this.options.onDenied === "allow";
    return {
      passes,
      decision,
      fields: this.#fields(decision, source),
      status: 429,
      body: passes ? "" : bodyOf(decision, source),
      finish: allowed && held !== undefined ? this.#finish(held) : undefined,
    };
  }

  #fields(decision: Decision, { policies }: Source): Fields {
    const { headers } = this.options;
    if (headers === "none") return none;
    return written(() => rateLimitHeaders(decision, policies, { legacy: headers === "legacy" })) ?? none;
  }

  /** Closes a reservation, once. Whatever was cut short is charged: hanging up must not pay. */
  #finish(held: Held): (isSuccess: boolean | undefined) => unknown {
    let isOpen = true;
    return (isSuccess) => {
      if (!isOpen) return undefined;
      isOpen = false;
      const { charge } = this.options;
      const isFree = charge !== "all" && isSuccess === (charge === "failures");
      return close(isFree ? held.cancel : held.settle);
    };
  }

  #giveUp(request: Request, key: Key, error: unknown): Awaitable<Verdict> {
    const { onError = "allow" } = this.options;
    return after(typeof onError === "function" ? onError(error, request) : onError, (verdict) => {
      this.#publish(request, key, error, verdict);
      if (verdict === "allow") return passed;
      if (verdict === "deny") return unanswered;
      throw error;
    });
  }

  #publish(request: Request, key: Key, error: unknown, verdict: ErrorVerdict | "fallback"): void {
    const adapter = this.#adapter.name;
    const isHeard = publishError({ adapter, key, error, verdict, request });
    if (!isHeard && verdict !== "throw")
      warnOnce(
        `error ${verdict}`,
        `a limiter failed, and onError or fallback decides (${verdict}): ${error}`,
      );
  }
}

function fallbackOf(fallback: GuardOptions<never>["fallback"]): Source | undefined {
  if (fallback === undefined) return undefined;
  const limiter = isLimiter(fallback) ? fallback : new RateLimiter(fallback);
  return sourceOf(limiter, limiter.policies ?? []);
}

/** Here, since not every limiter would notice: a Durable Object has a name for anything. */
function checkKey(key: unknown): asserts key is Key {
  if (["string", "bigint"].includes(typeof key) || Number.isFinite(key)) return;
  const expected = "return a string, finite number or bigint, or skip such requests";
  throw new TollgateError("invalid_key", `key: ${inWords(key)} is not a key; ${expected}`);
}

/** Here too, since an error that comes back from elsewhere may not say that it was the cost. */
function checkCosts(costs: unknown): asserts costs is Costs {
  if (costs === 1) return;
  for (const cost of Object(costs) === costs ? Object.values(costs as object) : [costs])
    if (!Number.isSafeInteger(cost) || (cost as number) < 0)
      throw new TollgateError("invalid_cost", `cost: ${inWords(cost)} is not an integer from 0 on`);
}

/** By name and code: a limiter of another entry of the package, or of its other format, has a class of its own. */
function isBadInput(error: unknown): boolean {
  const { name, code } = (error ?? {}) as Partial<TollgateError>;
  const badInput = /^(invalid_(?!state)|unknown_|policy_mismatch|reserve_only)/;
  return name === "TollgateError" && badInput.test(code ?? "");
}

const bodyOf = (decision: Decision, { policies }: Source): string =>
  written(() => problemBody(decision, policies)) ?? JSON.stringify({ type: "about:blank", status: 429 });

/** The policies that were given may not be those of a limiter elsewhere. That must not break the response. */
function written<Text>(write: () => Text): Text | undefined {
  try {
    return write();
  } catch (error) {
    warnOnce(
      "policy",
      `the limiter decides by other policies than those given, so there are no headers: ${error}`,
    );
    return undefined;
  }
}

/** Closes a reservation. A finished piece of work never fails on its account. */
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
