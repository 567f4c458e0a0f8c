import { invalidField, TollgateError } from "../errors/error.ts";
import { isInteger } from "../policy/durations.ts";

/** What a provider counts of one call. */
export interface ModelUsage {
  /** All tokens of the input, with those of the next fields. */
  readonly inputTokens: number;
  /** Those that were read from the provider's cache. */
  readonly cachedInputTokens: number;
  /** Those that were written to the provider's cache. */
  readonly cacheWriteTokens: number;
  /** Those of `cacheWriteTokens` that stay for longer: an hour at Anthropic, twelve at OpenAI. */
  readonly longCacheWriteTokens: number;
  /** Those of sound. */
  readonly audioInputTokens: number;
  /** Those of images. */
  readonly imageInputTokens: number;
  /** All tokens of the output, with those of the next fields. */
  readonly outputTokens: number;
  /** Those of sound. */
  readonly audioOutputTokens: number;
  /** Those of images. */
  readonly imageOutputTokens: number;
  /**
   * What is counted in other units: `calls`, `images`, `seconds`, `search_units`, and the uses of tools by the provider's
   * names, such as `web_search_requests`.
   */
  readonly uses: Readonly<Record<string, number>>;
  /** The service tier, such as `"batch"` or `"priority"`. */
  readonly tier: string | undefined;
}

/** The counts of tokens of a usage. */
export type TokenField = Exclude<keyof ModelUsage, "uses" | "tier">;

/** The usage as far as a provider says it: what it does not say, or what is no count, is undefined. */
export type SaidUsage = { readonly [name in TokenField]: number | undefined } & {
  readonly uses: Readonly<Record<string, number>>;
  readonly tier: string | undefined;
  /** Whether a field that is known has a value that is no count. */
  readonly hasWrong: boolean;
};

/** A usage that says nothing. */
export const unsaid: SaidUsage = {
  inputTokens: undefined,
  cachedInputTokens: undefined,
  cacheWriteTokens: undefined,
  longCacheWriteTokens: undefined,
  audioInputTokens: undefined,
  imageInputTokens: undefined,
  outputTokens: undefined,
  audioOutputTokens: undefined,
  imageOutputTokens: undefined,
  uses: {},
  tier: undefined,
  hasWrong: false,
};

type Fields = { readonly [name: string]: unknown };

export const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {};

/** Returns the sum of counts; `undefined` if none is known. */
function sum(...counts: readonly (number | undefined)[]): number | undefined {
  if (counts.every((each) => each === undefined)) return undefined;
  const total = counts.reduce<number>((all, each) => all + (each ?? 0), 0);
  return isInteger(total) ? total : undefined;
}

/** Reads counts, and remembers whether one of them was none. */
class Counts {
  hasWrong = false;

  /** Returns the first of the values that are there, if it is a count. */
  readonly first = (...values: readonly unknown[]): number | undefined => {
    const value = values.find((each) => each !== undefined && each !== null);
    if (value === undefined || isInteger(value)) return value;
    this.hasWrong = true;
    return undefined;
  };
}

/**
 * Reads the usage of a response: that of the APIs of OpenAI, Anthropic, Gemini, Cohere, or of the AI SDK in any version. Each
 * says it with other names. For a call that has no output, a total is its input.
 */
export function readUsage(usage: unknown, hasOutput = true): SaidUsage {
  const counts = new Counts();
  const fields = fieldsOf(usage);
  const { inputTokens } = fields;
  const isOfParts = typeof inputTokens === "object" && inputTokens !== null;
  const said = isOfParts
    ? ofParts(fields, counts)
    : isOfGemini(fields)
      ? ofGemini(fields, counts)
      : ofNames(fields, counts, hasOutput);
  return { ...said, hasWrong: counts.hasWrong };
}

/**
 * Returns a usage that a caller reports.
 * @throws TollgateError if it lacks the input or the output, or has a value that is no count.
 */
export function checkedUsage(usage: unknown): SaidUsage {
  const said = readUsage(usage);
  if (typeof usage !== "object" || usage === null)
    throw invalidField("invalid_request", "usage", usage, usageText);
  const isWhole = said.inputTokens !== undefined && said.outputTokens !== undefined;
  if (said.hasWrong || !(isWhole || Object.keys(said.uses).length > 0)) throw unknownUsage(usage);
  return said;
}

const usageText = "a usage of OpenAI, Anthropic, Gemini or the AI SDK, or { inputTokens, outputTokens }";

const unknownUsage = (usage: object) => {
  const names = Object.keys(usage).slice(0, 8).join(", ");
  return new TollgateError(
    "invalid_request",
    `usage: an object with ${names === "" ? "no fields" : names} does not say the tokens of the input and the output (${usageText})`,
  );
};

/** Returns the sum of two usages. */
export function sumOf(one: SaidUsage, other: SaidUsage): SaidUsage {
  const both: { -readonly [name in keyof SaidUsage]: SaidUsage[name] } = {
    ...one,
    tier: other.tier ?? one.tier,
  };
  for (const name of tokenFields) both[name] = sum(one[name], other[name]) ?? both[name];
  return { ...both, uses: merged(one.uses, other.uses, (a, b) => a + b) };
}

/** Returns a usage with what was said later: no cost that was said once is taken back. */
export function laterOf(one: SaidUsage, other: SaidUsage): SaidUsage {
  const both: { -readonly [name in keyof SaidUsage]: SaidUsage[name] } = {
    ...one,
    tier: other.tier ?? one.tier,
  };
  for (const name of tokenFields) both[name] = larger(one[name], other[name]);
  // It makes the input cheaper.
  both.cachedInputTokens = other.cachedInputTokens ?? one.cachedInputTokens;
  return { ...both, uses: merged(one.uses, other.uses, Math.max) };
}

const tokenFields: readonly TokenField[] = [
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "longCacheWriteTokens",
  "audioInputTokens",
  "imageInputTokens",
  "outputTokens",
  "audioOutputTokens",
  "imageOutputTokens",
];

const larger = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);

function merged(one: SaidUsage["uses"], other: SaidUsage["uses"], of: (a: number, b: number) => number) {
  const both: Record<string, number> = { ...one };
  for (const [name, count] of Object.entries(other)) both[name] = of(both[name] ?? 0, count);
  return both;
}

/** Reads names with or without underscores. */
function ofNames(fields: Fields, { first }: Counts, hasOutput: boolean): SaidUsage {
  const units = fieldsOf(fields["billed_units"]);
  const input = fieldsOf(
    fields["prompt_tokens_details"] ??
      fields["input_tokens_details"] ??
      fields["input_token_details"] ??
      fields["inputTokenDetails"],
  );
  const output = fieldsOf(
    fields["completion_tokens_details"] ??
      fields["output_tokens_details"] ??
      fields["output_token_details"] ??
      fields["outputTokenDetails"],
  );
  const written = fieldsOf(fields["cache_creation"]);
  const hour = first(written["ephemeral_1h_input_tokens"]);
  // Only Anthropic's names come without what the cache had.
  const read = first(fields["cache_read_input_tokens"]);
  const created =
    first(fields["cache_creation_input_tokens"]) ?? sum(first(written["ephemeral_5m_input_tokens"]), hour);
  const given = first(
    fields["prompt_tokens"],
    fields["input_tokens"],
    fields["inputTokens"],
    units["input_tokens"],
  );
  const only = first(fields["tokens"]);
  const total = first(fields["total_tokens"], fields["totalTokens"]);
  const inputTokens =
    (given === undefined ? undefined : sum(given, read, created)) ?? only ?? (hasOutput ? undefined : total);
  const said = first(
    fields["completion_tokens"],
    fields["output_tokens"],
    fields["outputTokens"],
    units["output_tokens"],
  );
  return {
    ...unsaid,
    inputTokens,
    cachedInputTokens:
      read ?? first(input["cached_tokens"], input["cacheReadTokens"], fields["cachedInputTokens"]),
    cacheWriteTokens: created ?? first(input["cache_write_tokens"], input["cacheWriteTokens"]),
    longCacheWriteTokens: hour ?? first(fieldsOf(input["cache_write_tokens_details"])["ttl_12h_tokens"]),
    audioInputTokens: first(input["audio_tokens"]),
    imageInputTokens: first(input["image_tokens"]),
    outputTokens: withUnnamed(said ?? (only === undefined ? undefined : 0), inputTokens, total),
    audioOutputTokens: first(output["audio_tokens"]),
    imageOutputTokens: first(output["image_tokens"]),
    uses: usesIn(fields, units),
    tier: tierIn(fields["service_tier"]),
    ...(fields["raw"] === undefined ? undefined : detailsOf(fields["raw"])),
  };
}

const isOfGemini = (fields: Fields): boolean =>
  fields["promptTokenCount"] !== undefined ||
  fields["candidatesTokenCount"] !== undefined ||
  fields["totalTokenCount"] !== undefined;

/** Reads the usage of Gemini. What tools gave to the model is input, and what it thought is output. */
function ofGemini(fields: Fields, { first }: Counts): SaidUsage {
  const prompt = first(fields["promptTokenCount"]);
  const inputTokens =
    prompt === undefined ? undefined : sum(prompt, first(fields["toolUsePromptTokenCount"]));
  const output = sum(
    first(fields["candidatesTokenCount"], fields["responseTokenCount"]),
    first(fields["thoughtsTokenCount"]),
  );
  const ofKind = (details: unknown, modality: string) =>
    first(
      (Array.isArray(details) ? details : []).find((each) => fieldsOf(each)["modality"] === modality)
        ?.tokenCount,
    );
  const outputs = fields["candidatesTokensDetails"] ?? fields["responseTokensDetails"];
  return {
    ...unsaid,
    inputTokens,
    cachedInputTokens: first(fields["cachedContentTokenCount"]),
    audioInputTokens: ofKind(fields["promptTokensDetails"], "AUDIO"),
    imageInputTokens: ofKind(fields["promptTokensDetails"], "IMAGE"),
    outputTokens: withUnnamed(output, inputTokens, first(fields["totalTokenCount"])),
    audioOutputTokens: ofKind(outputs, "AUDIO"),
    imageOutputTokens: ofKind(outputs, "IMAGE"),
    tier: tierIn(fields["serviceTier"]),
  };
}

/** Reads the usage of a model of the AI SDK from its version 6 on. */
function ofParts(fields: Fields, { first }: Counts): SaidUsage {
  const [input, output] = [fieldsOf(fields["inputTokens"]), fieldsOf(fields["outputTokens"])];
  const [cached, written] = [first(input["cacheRead"]), first(input["cacheWrite"])];
  return {
    ...unsaid,
    ...detailsOf(fields["raw"]),
    inputTokens: first(input["total"]) ?? sum(first(input["noCache"]), cached, written),
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: first(output["total"]) ?? sum(first(output["text"]), first(output["reasoning"])),
  };
}

/** What only the provider's own usage says: the AI SDK has no names for it. */
const details = [
  "longCacheWriteTokens",
  "audioInputTokens",
  "imageInputTokens",
  "audioOutputTokens",
  "imageOutputTokens",
  "uses",
  "tier",
] as const;

/** Returns the details of a provider's own usage. */
function detailsOf(raw: unknown): Partial<SaidUsage> {
  const said = readUsage({ ...fieldsOf(raw), raw: undefined });
  return Object.fromEntries(details.map((name) => [name, said[name]]));
}

/** Returns what is counted in other units than tokens. A started second is one. */
function usesIn(fields: Fields, units: Fields): Record<string, number> {
  const uses: Record<string, number> = {};
  const add = (name: string, count: unknown) => {
    if (isInteger(count, 1)) uses[name] = count;
  };
  const { seconds } = fields;
  if (typeof seconds === "number") add("seconds", Math.ceil(seconds));
  add("search_units", units["search_units"]);
  for (const [name, count] of Object.entries(fieldsOf(fields["server_tool_use"]))) add(name, count);
  for (const [tool, of] of Object.entries(fieldsOf(fields["tool_usage"])))
    for (const [name, count] of Object.entries(fieldsOf(of)))
      add(`${tool}_${name.replace(/^num_/, "")}`, count);
  return uses;
}

const tierIn = (tier: unknown): string | undefined => (typeof tier === "string" ? tier : undefined);

/** Adds what is only in the total: some providers do not say reasoning as output. */
function withUnnamed(output: number | undefined, input = 0, total: number | undefined): number | undefined {
  if (total === undefined || total < input) return output;
  return Math.max(output ?? 0, total - input);
}
