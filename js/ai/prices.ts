import { copiedOptions } from "../checks.ts";
import { invalidField, TollgateError } from "../errors/error.ts";
import { isRecord } from "../policy/costs.ts";
import { isInteger } from "../policy/durations.ts";
import { checkedDecimal, roundedUp, usd } from "../policy/money.ts";
import type { ModelUsage } from "./usage.ts";

/** The prices of tokens in dollars per million, as decimal strings. */
export interface TokenPrices {
  /** The price of input tokens. */
  readonly input: string;
  /** The price of input tokens that the provider read from its cache; that of `input` by default. */
  readonly cachedInput?: string | undefined;
  /** The price of input tokens that the provider wrote to its cache; that of `input` by default. */
  readonly cacheWrite?: string | undefined;
  /** The price of those that it keeps for longer, such as Anthropic's hour; twice that of `input` by default. */
  readonly longCacheWrite?: string | undefined;
  /** The price of input tokens of sound; that of `input` by default. */
  readonly audioInput?: string | undefined;
  /** The price of input tokens of images; that of `input` by default. */
  readonly imageInput?: string | undefined;
  /** The price of output tokens; `"0"` for a model that only embeds. */
  readonly output: string;
  /** The price of output tokens of sound; that of `output` by default. */
  readonly audioOutput?: string | undefined;
  /** The price of output tokens of images; that of `output` by default. */
  readonly imageOutput?: string | undefined;
}

/** The prices of calls with a long input. */
export interface ContextPrices extends TokenPrices {
  /** They apply to calls with more input tokens than this. */
  readonly inputTokens: number;
}

/** The prices of a model, as decimal strings. */
export interface ModelPrices extends TokenPrices {
  /** Other prices for calls with a long input; the ones of the largest that fits apply to the whole call. */
  readonly above?: readonly ContextPrices[] | undefined;
  /** What tokens cost in a service tier, as a part of these prices: `{ batch: "0.5", priority: "2" }`. */
  readonly tiers?: Readonly<Record<string, string>> | undefined;
  /**
   * What else costs, in dollars each: `{ calls: "0.01", images: "0.04", seconds: "0.0001", web_search_requests: "0.01" }`.
   * `ModelUsage.uses` has the names.
   */
  readonly uses?: Readonly<Record<string, string>> | undefined;
}

/** A use of a model whose price is asked for: first what is estimated, and then what was used. */
export interface PricedUse {
  /** The name of the model. */
  readonly model: string;
  /** What was used. */
  readonly usage: ModelUsage;
}

/**
 * The prices by model, or a function that returns the prices for a use, or its price in dollars, as a decimal string, or
 * `undefined` for a model that it does not know.
 */
export type PriceList =
  | Readonly<Record<string, ModelPrices>>
  | ((use: PricedUse) => ModelPrices | string | undefined);

/** Returns the price of a use in millionths of a dollar; `undefined` for a model without a price. */
export type PriceOf = (use: PricedUse) => number | undefined;

const parts = [
  "input",
  "cachedInput",
  "cacheWrite",
  "longCacheWrite",
  "audioInput",
  "imageInput",
  "output",
  "audioOutput",
  "imageOutput",
] as const;

/** Prices in 10⁻¹² millionths of a dollar per token. Dollars per million tokens are millionths per token. */
type PartPrices = { readonly [part in (typeof parts)[number]]: bigint };

interface Prices extends PartPrices {
  readonly above: readonly (PartPrices & { readonly inputTokens: number })[];
  readonly tiers: ReadonlyMap<string, bigint>;
  readonly uses: ReadonlyMap<string, bigint>;
}

/** Reads a price list. Each field of one that is no function is read once. */
export function readPrices(given: unknown): PriceOf | undefined {
  if (given === undefined) return undefined;
  if (typeof given === "function") return pricesOf(given as (use: PricedUse) => unknown);
  if (!isRecord(given))
    throw invalidField(
      "invalid_option",
      "prices",
      given,
      '{ "gpt-5": { input: "1.25", output: "10" } }, or a function',
    );
  const prices = new Map(Object.entries(given).map(([model, each]) => [model, readModel(model, each)]));
  return ({ model, usage }) => {
    const found = prices.get(model);
    return found && usdOf(usage, found);
  };
}

const pricesOf =
  (of: (use: PricedUse) => unknown): PriceOf =>
  (use) => {
    const price = of(use);
    if (price === undefined) return undefined;
    return typeof price === "string" ? usd(price) : usdOf(use.usage, readModel(use.model, price));
  };

function readModel(model: string, given: unknown): Prices {
  const field = `prices[${JSON.stringify(model)}]`;
  const own = recordOf<ModelPrices>(field, given, ["above", "tiers", "uses"]);
  const { above = [], tiers = {}, uses = {} } = own;
  if (!Array.isArray(above))
    throw invalidField(
      "invalid_option",
      `${field}.above`,
      above,
      '[{ inputTokens: 200_000, input: "2.5", output: "15" }]',
    );
  return {
    ...readParts(field, own),
    above: above.map((each: unknown, at) => readAbove(`${field}.above[${at}]`, each)).sort(byInput),
    tiers: decimals(`${field}.tiers`, tiers),
    uses: decimals(`${field}.uses`, uses),
  };
}

function readAbove(field: string, given: unknown): PartPrices & { readonly inputTokens: number } {
  const own = recordOf<ContextPrices>(field, given, ["inputTokens"]);
  const { inputTokens } = own;
  if (!isInteger(inputTokens))
    throw invalidField("invalid_option", `${field}.inputTokens`, inputTokens, "a number of tokens");
  return { ...readParts(field, own), inputTokens };
}

const byInput = (one: { inputTokens: number }, other: { inputTokens: number }) =>
  one.inputTokens - other.inputTokens;

function recordOf<Given extends object>(field: string, given: unknown, more: readonly string[]): Given {
  if (!isRecord(given)) throw invalidField("invalid_option", field, given, '{ input: "1.25", output: "10" }');
  return copiedOptions(given as Given, [...parts, ...more]);
}

function readParts(field: string, own: TokenPrices): PartPrices {
  const { input, output } = own;
  const read = (part: (typeof parts)[number], value = own[part]) => checkedDecimal(`${field}.${part}`, value);
  const [perInput, perOutput] = [read("input"), read("output")];
  const or = (part: (typeof parts)[number], otherwise: bigint) =>
    own[part] === undefined ? otherwise : read(part);
  return {
    input: perInput,
    cachedInput: read("cachedInput", own.cachedInput ?? input),
    cacheWrite: read("cacheWrite", own.cacheWrite ?? input),
    longCacheWrite: or("longCacheWrite", 2n * perInput),
    audioInput: read("audioInput", own.audioInput ?? input),
    imageInput: read("imageInput", own.imageInput ?? input),
    output: perOutput,
    audioOutput: read("audioOutput", own.audioOutput ?? output),
    imageOutput: read("imageOutput", own.imageOutput ?? output),
  };
}

function decimals(field: string, given: unknown): ReadonlyMap<string, bigint> {
  if (!isRecord(given))
    throw invalidField("invalid_option", field, given, 'decimal strings by name, such as { batch: "0.5" }');
  return new Map(
    Object.entries(given).map(([name, value]) => [
      name,
      checkedDecimal(`${field}[${JSON.stringify(name)}]`, value),
    ]),
  );
}

/** The factor of no tier, and what is a millionth of it. */
const [one, million] = [10n ** 12n, 1_000_000n];

/** Returns the price of a use in millionths of a dollar, rounded up once. */
function usdOf(usage: ModelUsage, prices: Prices): number {
  const at = prices.above.findLast(({ inputTokens }) => usage.inputTokens > inputTokens) ?? prices;
  const written = usage.cacheWriteTokens - usage.longCacheWriteTokens;
  const { inputTokens, cachedInputTokens, cacheWriteTokens, audioInputTokens, imageInputTokens } = usage;
  const { outputTokens, audioOutputTokens, imageOutputTokens } = usage;
  const products = [
    [inputTokens - cachedInputTokens - cacheWriteTokens - audioInputTokens - imageInputTokens, at.input],
    [cachedInputTokens, at.cachedInput],
    [written, at.cacheWrite],
    [usage.longCacheWriteTokens, at.longCacheWrite],
    [audioInputTokens, at.audioInput],
    [imageInputTokens, at.imageInput],
    [outputTokens - audioOutputTokens - imageOutputTokens, at.output],
    [audioOutputTokens, at.audioOutput],
    [imageOutputTokens, at.imageOutput],
  ] as const;
  const tokens = products.reduce((sum, [count, price]) => sum + BigInt(count) * price, 0n);
  let uses = 0n;
  for (const [name, count] of Object.entries(usage.uses))
    uses += BigInt(count) * (prices.uses.get(name) ?? 0n) * million;
  const factor = prices.tiers.get(usage.tier ?? "") ?? one;
  // Rounded up in two steps, which is the same as in one.
  return roundedUp((tokens * factor + one - 1n) / one + uses);
}

/** Returns the error for a model without a price. */
export const unpriced = (model: string): TollgateError =>
  new TollgateError(
    "invalid_option",
    `prices: ${JSON.stringify(model)} has no price, and the limiter has a policy named "usd"; add it, or return usd from estimate`,
  );
