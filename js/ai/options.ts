import { checkFunctions, copiedOptions } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import type { Awaitable } from "../guard/types.ts";
import { isInteger, milliseconds } from "../policy/durations.ts";
import { usd } from "../policy/money.ts";
import type { Timer } from "../throttle/alarm.ts";
import type { Duration, Key, Policies } from "../types.ts";
import type { BudgetCharge, OnAbort } from "./charge.ts";
import type { BudgetDenied } from "./denied.ts";
import type { BudgetLimiter, BudgetNamespace } from "./limiter.ts";
import type { PriceList } from "./prices.ts";
import type { SoftLimitReached } from "./soft-limit.ts";

/** A call of a model, for the options that are functions. */
export interface BudgetCall {
  /** The name of the model. */
  readonly model: string;
  /** The parameters of the call: those of the AI SDK, or the body of the request. */
  readonly params: unknown;
  /** The estimated tokens of the input, by its length. */
  readonly inputTokens: number;
  /** The most tokens of the output by the parameters, or by `maxOutputTokens`. */
  readonly outputTokens: number;
}

/** The amounts to reserve for a call. Those that are left out are estimated. */
export interface Estimate {
  /** The tokens of the input. */
  readonly inputTokens?: number | undefined;
  /** The tokens of the output. */
  readonly outputTokens?: number | undefined;
  /** The price in dollars, as a decimal string; by default that of the tokens. */
  readonly usd?: string | undefined;
}

/** The options of every budget. */
export interface BudgetOptions {
  /**
   * Decides and counts: a `RateLimiter`, `RedisLimiter`, `StoreLimiter` or `RemoteLimiter`, or a Durable Object namespace
   * such as `env.LIMITERS`. Its policies are found by the names of `BudgetPolicy`.
   */
  readonly limiter: BudgetLimiter | BudgetNamespace;
  /** The policies of a Durable Object namespace. */
  readonly policy?: Policies | undefined;
  /** The key whose budget a call uses, or a function that returns it. */
  readonly key: Key | ((call: BudgetCall) => Awaitable<Key>);
  /** The prices by model, or a function that returns them, or a price. Required with a policy named `usd`. */
  readonly prices?: PriceList | undefined;
  /** The amounts to reserve, or a function that returns them. */
  readonly estimate?: Estimate | ((call: BudgetCall) => Awaitable<Estimate>) | undefined;
  /**
   * The most tokens of the output of a call that does not say: a number, numbers by model, or `"required"`, which makes such
   * a call an error. By default 4,096, with a warning for models that think, since they may use many times as much.
   */
  readonly maxOutputTokens?: number | Readonly<Record<string, number>> | "required" | undefined;
  /**
   * What a call costs that the caller aborts: what it had `reserved`, or what was `delivered`. By default what was delivered
   * if something was, and otherwise what it had reserved: the provider goes on, and bills it.
   */
  readonly onAbort?: OnAbort | undefined;
  /** Called after each charge. */
  readonly onCharge?: ((charge: BudgetCharge) => Awaitable<void>) | undefined;
  /** Parts of limits, by policies, such as `{ usd: 0.8 }`: after each charge the key's count is looked at. */
  readonly softLimits?: Readonly<Record<string, number>> | undefined;
  /** Called when a key reaches a soft limit: once in a process, until it is seen below. */
  readonly onSoftLimit?: ((reached: SoftLimitReached) => Awaitable<void>) | undefined;
  /** Counts the tokens of a text, for estimates and for output whose usage is unknown; by default from its length. */
  readonly countTokens?: ((text: string, model: string) => number) | undefined;
  /** How long a denied call waits until it is allowed; by default it fails at once. */
  readonly wait?: Duration | undefined;
  /** How long a reservation lasts if the process dies; a minute by default. A call that runs longer extends it. */
  readonly ttl?: Duration | undefined;
  /** Keeps a Worker alive until a charge is stored: `waitUntil` of its context. */
  readonly waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
  /** Milliseconds since the epoch; `Date.now` by default. */
  readonly clock?: (() => number) | undefined;
  /** Starts the timers of waits and extensions; the platform's by default. */
  readonly timer?: Timer | undefined;
}

/** What happens to a denied call of a model of the AI SDK. */
export interface ModelBudgetOptions extends BudgetOptions {
  /** Called with the error of a denied call before it is thrown; it may throw another. */
  readonly onDenied?: ((denied: BudgetDenied) => Awaitable<void>) | undefined;
}

/** The names of the options of every budget. */
const names = [
  "limiter",
  "policy",
  "key",
  "prices",
  "estimate",
  "maxOutputTokens",
  "onAbort",
  "onCharge",
  "softLimits",
  "onSoftLimit",
  "countTokens",
  "wait",
  "ttl",
  "waitUntil",
  "clock",
  "timer",
];

/** Copies the options of a budget and checks those that are simple. */
export function readOptions<Options extends BudgetOptions>(given: Options, more: readonly string[]): Options {
  const options = copiedOptions(given, [...names, ...more]);
  checkFunctions(options, ["onCharge", "onSoftLimit", "countTokens", "waitUntil", "clock", "timer"]);
  const { key, estimate, maxOutputTokens, onAbort, softLimits, onSoftLimit, wait, ttl } = options;
  if (key === undefined)
    throw invalidField("invalid_option", "key", key, "a key, or a function that returns one");
  if (estimate !== undefined && typeof estimate !== "function") checkEstimate(estimate);
  checkMost(maxOutputTokens);
  if (onAbort !== undefined && onAbort !== "reserved" && onAbort !== "delivered")
    throw invalidField("invalid_option", "onAbort", onAbort, '"reserved" or "delivered"');
  if ((softLimits === undefined) !== (onSoftLimit === undefined))
    throw invalidField(
      "invalid_option",
      softLimits === undefined ? "softLimits" : "onSoftLimit",
      undefined,
      softText,
    );
  checkDuration("wait", wait);
  checkDuration("ttl", ttl);
  return options;
}

const softText = "both softLimits, such as { usd: 0.8 }, and onSoftLimit, a function";

/** Checks the most tokens of outputs. */
function checkMost(given: unknown): void {
  if (given === undefined || given === "required") return;
  const counts = typeof given === "object" && given !== null ? Object.values(given) : [given];
  if (!counts.every((count) => isInteger(count, 1)))
    throw invalidField("invalid_option", "maxOutputTokens", given, mostText);
}

const mostText = 'a number of tokens, numbers by model such as { "gpt-5": 32_000 }, or "required"';

/** Checks an estimate, and returns a copy. */
export function checkEstimate(given: Estimate): Estimate {
  const estimate = copiedOptions(given, ["inputTokens", "outputTokens", "usd"]);
  for (const name of ["inputTokens", "outputTokens"] as const) {
    const tokens: unknown = estimate[name];
    if (tokens !== undefined && !(Number.isSafeInteger(tokens) && (tokens as number) >= 0))
      throw invalidField("invalid_option", `estimate.${name}`, tokens, "a number of tokens");
  }
  if (estimate.usd !== undefined) usd(estimate.usd);
  return estimate;
}

function checkDuration(name: "wait" | "ttl", duration: unknown): void {
  const time = duration === undefined ? 1 : milliseconds(duration);
  if (time === undefined || time > 86_400_000)
    throw invalidField("invalid_option", name, duration, 'a duration of at most a day, such as "30s"');
}
