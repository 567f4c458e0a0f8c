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
import { type Prices, readPrices, unpriced } from "./prices.ts";
import { eachText, TokenCount } from "./text.ts";
import { Waiting } from "./waiting.ts";

/** A call that wants to begin. */
export interface NewCall {
  readonly model: string;
  readonly params: unknown;
  /** The parts of the parameters that are the input. */
  readonly input: unknown;
  /** The most tokens of the output by the parameters. */
  readonly mostOutput: number | undefined;
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
  readonly #prices: ReadonlyMap<string, Prices> | undefined;
  readonly #estimate: BudgetOptions["estimate"];
  readonly #setting: ChargeSetting;
  readonly #waiting: Waiting;

  /** The options are those that `readOptions` returned. */
  constructor(options: BudgetOptions) {
    const { limiter, policy, estimate, clock = Date.now, timer } = options;
    this.#options = options;
    this.#prices = readPrices(options.prices);
    const readLimiter = limiterOf(limiter, policy);
    this.#meters = new Meters(limiter, policy, this.#prices !== undefined);
    this.#estimate = typeof estimate === "object" ? checkEstimate(estimate) : estimate;
    this.#waiting = new Waiting(milliseconds(options.wait), () => checkTime(clock()), timer ?? platformTimer);
    this.#setting = {
      limiter: readLimiter,
      timer: timer ?? extensionTimer,
      ttl: milliseconds(options.ttl) ?? defaultTtl,
      waitUntil: options.waitUntil,
      onFree: (key) => this.#waiting.wake(key),
    };
  }

  /**
   * Reserves the estimate of a call.
   * @throws BudgetDenied if it is denied, and the time to wait is over.
   */
  async open({ model, params, input, mostOutput, signal, estimate: own }: NewCall): Promise<Charge> {
    const call = {
      model,
      params,
      inputTokens: this.#tokensOf(input, model),
      outputTokens: mostOutput ?? defaultOutput,
    };
    const estimate = { ...(await this.#estimated(call)), ...own };
    const inputTokens = estimate.inputTokens ?? call.inputTokens;
    const output = estimate.outputTokens ?? call.outputTokens;
    const use = { input: inputTokens, cachedInput: 0, cacheWrite: 0, output };
    const price = this.#price(model, estimate);
    const reserved = this.#meters.amounts(use, estimate.usd === undefined ? price : usd(estimate.usd));
    const { key: given } = this.#options;
    const key = typeof given === "function" ? await given(call) : given;
    const reservation = await this.#reserve(key, reserved, signal);
    return new Charge(this.#setting, {
      key,
      reservation,
      reserved,
      inputTokens,
      delivered: this.#delivered(model),
      amounts: (used) => this.#meters.amounts(used, price),
    });
  }

  async #estimated(call: BudgetCall): Promise<Estimate | undefined> {
    return typeof this.#estimate === "function" ? checkEstimate(await this.#estimate(call)) : this.#estimate;
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

  /** Returns the prices of a model, or the price that was estimated for a model without any. */
  #price(model: string, estimate: Estimate): Prices | number {
    if (!this.#meters.hasUsd) return 0;
    const prices = this.#prices?.get(model);
    if (prices !== undefined) return prices;
    if (estimate.usd === undefined) throw unpriced(model);
    return usd(estimate.usd);
  }

  #delivered(model: string): Delivered {
    const { countTokens } = this.#options;
    return new Delivered(countTokens && ((text) => countTokens(text, model)));
  }

  /** Returns the tokens of an input. */
  #tokensOf(input: unknown, model: string): number {
    const { countTokens } = this.#options;
    if (countTokens === undefined) {
      const count = new TokenCount();
      eachText(input, (text) => count.add(text));
      return count.tokens;
    }
    const texts: string[] = [];
    eachText(input, (text) => texts.push(text));
    return countedBy((text) => countTokens(text, model), texts.join("\n"));
  }
}
