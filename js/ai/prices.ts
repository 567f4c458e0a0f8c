import { copiedOptions } from "../checks.ts";
import { invalidField, TollgateError } from "../errors/error.ts";
import { isRecord } from "../policy/costs.ts";
import { checkedDecimal, roundedUp } from "../policy/money.ts";

/** The prices of a model in dollars per million tokens, as decimal strings. */
export interface ModelPrices {
  /** The price of input tokens. */
  readonly input: string;
  /** The price of input tokens that the provider read from its cache; that of `input` by default. */
  readonly cachedInput?: string | undefined;
  /** The price of input tokens that the provider wrote to its cache; that of `input` by default. */
  readonly cacheWrite?: string | undefined;
  /** The price of output tokens; `"0"` for a model that only embeds. */
  readonly output: string;
}

/** Numbers of tokens of one call. */
export interface Use {
  /** All tokens of the input, cached ones included. */
  readonly input: number;
  /** Those of the input that were read from the provider's cache. */
  readonly cachedInput: number;
  /** Those of the input that were written to the provider's cache. */
  readonly cacheWrite: number;
  readonly output: number;
}

/** Prices in 10⁻¹² millionths of a dollar per token. Dollars per million tokens are millionths per token. */
export type Prices = { readonly [part in keyof ModelPrices]-?: bigint };

/** Reads prices by model. Each field is read once. */
export function readPrices(given: unknown): ReadonlyMap<string, Prices> | undefined {
  if (given === undefined) return undefined;
  if (!isRecord(given))
    throw invalidField("invalid_option", "prices", given, '{ "gpt-5": { input: "1.25", output: "10" } }');
  return new Map(Object.entries(given).map(([model, prices]) => [model, readModel(model, prices)]));
}

function readModel(model: string, given: unknown): Prices {
  const field = `prices[${JSON.stringify(model)}]`;
  if (!isRecord(given)) throw invalidField("invalid_option", field, given, '{ input: "1.25", output: "10" }');
  const prices = copiedOptions(given as ModelPrices, ["input", "cachedInput", "cacheWrite", "output"]);
  const { cachedInput = prices.input, cacheWrite = prices.input } = prices;
  return {
    input: checkedDecimal(`${field}.input`, prices.input),
    cachedInput: checkedDecimal(`${field}.cachedInput`, cachedInput),
    cacheWrite: checkedDecimal(`${field}.cacheWrite`, cacheWrite),
    output: checkedDecimal(`${field}.output`, prices.output),
  };
}

/** Returns the price of a use in millionths of a dollar, rounded up once. */
export function usdOf(use: Use, prices: Prices): number {
  const uncached = use.input - use.cachedInput - use.cacheWrite;
  const parts = [
    [uncached, prices.input],
    [use.cachedInput, prices.cachedInput],
    [use.cacheWrite, prices.cacheWrite],
    [use.output, prices.output],
  ] as const;
  return roundedUp(parts.reduce((sum, [tokens, price]) => sum + BigInt(tokens) * price, 0n));
}

/** Returns the error for a model without a price. */
export const unpriced = (model: string): TollgateError =>
  new TollgateError(
    "invalid_option",
    `prices: ${JSON.stringify(model)} has no price, and the limiter has a policy named "usd"; add it, or return usd from estimate`,
  );
