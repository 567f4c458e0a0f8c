import { TollgateError } from "../errors/error.ts";
import { warnOnce } from "../guard/warnings.ts";
import { milliseconds } from "../policy/durations.ts";
import { usd } from "../policy/money.ts";
import { platformTimer, type Timer } from "../throttle/alarm.ts";
import { checkTime } from "../time.ts";
import type { Costs, Key } from "../types.ts";
import { Charge, type ChargeSetting } from "./charge.ts";
import { countedBy, Delivered } from "./delivered.ts";
import { BudgetDenied } from "./denied.ts";
import { type BudgetReservation, limiterOf } from "./limiter.ts";
import { type Amounts, Meters } from "./meters.ts";
import { type BudgetCall, type BudgetOptions, checkEstimate, type Estimate } from "./options.ts";
import { type PriceOf, readPrices, unpriced } from "./prices.ts";
import { SoftLimits } from "./soft-limit.ts";
import { eachText, TokenCount } from "./text.ts";
import type { ModelUsage } from "./usage.ts";
import { Waiting } from "./waiting.ts";

/** A call that wants to begin. */
export interface NewCall {
  readonly model: string;
  readonly params: unknown;
  /** The parts of the parameters that are the input. */
  readonly input: unknown;
  /** The tokens of the input that are no text. */
  readonly fileTokens?: number | undefined;
  /** The most tokens of the output by the parameters. */
  readonly mostOutput: number | undefined;
  /** How many outputs are asked for; 1 by default. */
  readonly outputs?: number | undefined;
  /** What is counted by itself, such as images; calls by default. */
  readonly uses?: Readonly<Record<string, number>> | undefined;
  /** The service tier. */
  readonly tier?: string | undefined;
  /** Whether nothing in the parameters says how much it may use. */
  readonly needsEstimate?: boolean | undefined;
  readonly signal: AbortSignal | undefined;
  /** An estimate of this call alone. */
  readonly estimate?: Estimate | undefined;
}

/** The tokens of an output without a bound. */
const defaultOutput = 4_096;

const defaultTtl = 60_000;

/** Does not keep a process alive: the call does. */
const extensionTimer: Timer = (callback, pause) => {
  const timer = setTimeout(callback, pause) as unknown as { unref?(): void };
  timer.unref?.();
  return () => clearTimeout(timer as never);
};

/** Reserves the amounts of calls, and returns their charges. */
export class Account {
  readonly #options: BudgetOptions;
  readonly #meters: Meters;
  readonly #prices: PriceOf | undefined;
  readonly #estimate: BudgetOptions["estimate"];
  readonly #setting: ChargeSetting;
  readonly #waiting: Waiting;

  /** The options are those that `readOptions` returned. */
  constructor(options: BudgetOptions) {
    const { limiter: given, policy, estimate, onCharge, softLimits, onSoftLimit } = options;
    const { clock = Date.now, timer } = options;
    this.#options = options;
    this.#prices = readPrices(options.prices);
    const limiter = limiterOf(given, policy);
    this.#meters = new Meters(given, policy, this.#prices !== undefined && onCharge === undefined);
    this.#estimate = typeof estimate === "object" ? checkEstimate(estimate) : estimate;
    this.#waiting = new Waiting(milliseconds(options.wait), () => checkTime(clock()), timer ?? platformTimer);
    const policies = (given as { readonly policies?: typeof policy }).policies ?? policy;
    const soft = onSoftLimit && new SoftLimits(softLimits, policies, limiter, onSoftLimit);
    this.#setting = {
      limiter,
      timer: timer ?? extensionTimer,
      ttl: milliseconds(options.ttl) ?? defaultTtl,
      onAbort: options.onAbort,
      onCharge,
      waitUntil: options.waitUntil,
      onFree: (key) => this.#waiting.wake(key),
      onCharged: soft && ((key) => soft.look(key)),
    };
  }

  /**
   * Reserves the estimate of a call.
   * @throws BudgetDenied if it is denied, and the time to wait is over.
   */
  async open(asked: NewCall): Promise<Charge> {
    const { model, params, mostOutput, signal, uses = {}, tier } = asked;
    const call: BudgetCall = {
      model,
      params,
      inputTokens: this.#tokensOf(asked.input, model) + (asked.fileTokens ?? 0),
      outputTokens: mostOutput ?? this.#mostOf(model) * (asked.outputs ?? 1),
    };
    const estimate = { ...(await this.#estimated(call)), ...asked.estimate };
    this.#checkMost(asked, estimate);
    const { inputTokens = call.inputTokens, outputTokens = call.outputTokens } = estimate;
    const estimated = { inputTokens, outputTokens };
    const what = { hasOutput: mostOutput !== 0, uses: { calls: 1, ...uses }, tier };
    const delivered = new Delivered(this.#countTokens(model), what);
    const usdOf = (usage: ModelUsage) => this.#usd(model, usage, estimate);
    const usage = delivered.usage(estimated);
    const reservedUsd = estimate.usd === undefined ? usdOf(usage) : usd(estimate.usd);
    const reserved = this.#meters.amounts(usage, reservedUsd);
    const { key: given } = this.#options;
    const key = typeof given === "function" ? await given(call) : given;
    const reservation = await this.#reserve(key, reserved, signal);
    return new Charge(this.#setting, {
      key,
      model,
      reservation,
      reserved,
      reservedUsd,
      hasOwnPrice: estimate.usd !== undefined,
      estimated,
      delivered,
      amounts: (used) => this.#meters.amounts(used, this.#meters.hasUsd ? usdOf(used) : undefined),
      usd: usdOf,
    });
  }

  async #estimated(call: BudgetCall): Promise<Estimate | undefined> {
    return typeof this.#estimate === "function" ? checkEstimate(await this.#estimate(call)) : this.#estimate;
  }

  /** Returns the most tokens of an output whose parameters do not say. */
  #mostOf(model: string): number {
    const { maxOutputTokens: most } = this.#options;
    if (typeof most === "object") return (Object.hasOwn(most, model) && most[model]) || defaultOutput;
    return typeof most === "number" ? most : defaultOutput;
  }

  /** Checks that something says how much a call may use. */
  #checkMost({ model, params, mostOutput, needsEstimate }: NewCall, estimate: Estimate): void {
    const { maxOutputTokens: most } = this.#options;
    const isSaid =
      mostOutput !== undefined || estimate.outputTokens !== undefined || estimate.usd !== undefined;
    if (isSaid || !this.#meters.isMetered) return;
    if (needsEstimate === true)
      throw new TollgateError(
        "invalid_request",
        "estimate: nothing in the request says how much it may use; return outputTokens or usd for it",
      );
    if (most === "required")
      throw new TollgateError(
        "invalid_request",
        `maxOutputTokens: the call of ${JSON.stringify(model)} does not say its most output tokens`,
      );
    const isSet = typeof most === "number" || (most !== undefined && Object.hasOwn(most, model));
    if (!isSet && thinks(model, params))
      warnOnce(
        "maxOutputTokens",
        `${JSON.stringify(model)} thinks, and a call does not say its most output tokens: ${defaultOutput} are reserved, and it may use many times as many; set them, or the option maxOutputTokens`,
      );
  }

  async #reserve(
    key: Key,
    reserved: Amounts | undefined,
    signal: AbortSignal | undefined,
  ): Promise<BudgetReservation> {
    const { limiter, ttl } = this.#setting;
    const costs = (reserved ?? 1) as Costs;
    const reserve = async () => {
      signal?.throwIfAborted();
      return await limiter.reserve(key, costs, { ttl });
    };
    const reservation = await this.#waiting.until(key, reserve, signal);
    if (!reservation.decision.allowed)
      throw new BudgetDenied(reservation.decision, key, {
        ...(reserved as Record<string, number> | undefined),
      });
    if (signal?.aborted) {
      await reservation.settle(0);
      signal.throwIfAborted();
    }
    return reservation;
  }

  /** Returns the price of a usage, or the one that was estimated for a model without any. */
  #usd(model: string, usage: ModelUsage, estimate: Estimate): number | undefined {
    const price =
      this.#prices?.({ model, usage }) ?? (estimate.usd === undefined ? undefined : usd(estimate.usd));
    if (price === undefined && (this.#meters.hasUsd || this.#prices !== undefined)) throw unpriced(model);
    return price;
  }

  #countTokens(model: string): ((text: string) => number) | undefined {
    const { countTokens } = this.#options;
    return countTokens && ((text) => countTokens(text, model));
  }

  /** Returns the tokens of an input. */
  #tokensOf(input: unknown, model: string): number {
    const countTokens = this.#countTokens(model);
    if (countTokens === undefined) {
      const count = new TokenCount();
      eachText(input, (text) => count.add(text));
      return count.tokens;
    }
    const texts: string[] = [];
    eachText(input, (text) => texts.push(text));
    return countedBy(countTokens, texts.join("\n"));
  }
}

/** Names of models that think before they answer. */
const thinkers =
  /(?:^|[/.])(?:o[1-9]|gpt-[5-9]|gemini-(?:2\.5|[3-9])|deepseek-r|grok-[34]|magistral|qwq)|think|reason/i;

/** Parameters that have a model think. */
const thinking = ["reasoning", "reasoning_effort", "thinking"];

/** Returns whether a model thinks, whose output is then mostly not in its answer. */
const thinks = (model: string, params: unknown): boolean =>
  thinkers.test(model) || thinking.some((name) => Object(params)[name] !== undefined);
