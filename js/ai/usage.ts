import { isInteger } from "../policy/durations.ts";

/** Numbers of tokens as a provider says them; those that it does not say, or that are no counts, are undefined. */
export interface SaidUsage {
  readonly input: number | undefined;
  readonly cachedInput: number | undefined;
  readonly cacheWrite: number | undefined;
  readonly output: number | undefined;
}

type Fields = { readonly [name: string]: unknown };

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {};

const count = (value: unknown): number | undefined => (isInteger(value) ? value : undefined);

/** Returns the sum of counts; `undefined` if none is known. */
function sum(...counts: readonly (number | undefined)[]): number | undefined {
  if (counts.every((each) => each === undefined)) return undefined;
  return count(counts.reduce<number>((total, each) => total + (each ?? 0), 0));
}

/**
 * Reads the usage of a response: that of OpenAI's APIs, of Anthropic's, or of the AI SDK in any version. Each says it with
 * other names.
 */
export function readUsage(usage: unknown): SaidUsage {
  const fields = fieldsOf(usage);
  const { inputTokens, outputTokens } = fields;
  if (typeof inputTokens === "object" && inputTokens !== null)
    return ofParts(fieldsOf(inputTokens), fieldsOf(outputTokens));
  const details = fieldsOf(fields["prompt_tokens_details"] ?? fields["input_tokens_details"]);
  // Only Anthropic's names come without what the cache had.
  const read = count(fields["cache_read_input_tokens"]);
  const written = count(fields["cache_creation_input_tokens"]);
  const input = count(fields["prompt_tokens"] ?? fields["input_tokens"] ?? inputTokens ?? fields["tokens"]);
  const total = count(fields["total_tokens"] ?? fields["totalTokens"]);
  const output = count(fields["completion_tokens"] ?? fields["output_tokens"] ?? outputTokens);
  return {
    input: input === undefined ? undefined : sum(input, read, written),
    cachedInput: read ?? count(details["cached_tokens"] ?? fields["cachedInputTokens"]),
    cacheWrite: written,
    output: withUnnamed(output, input, total),
  };
}

/** Reads the usage of the AI SDK from its version 6 on. */
function ofParts(input: Fields, output: Fields): SaidUsage {
  const [cachedInput, cacheWrite] = [count(input["cacheRead"]), count(input["cacheWrite"])];
  return {
    input: count(input["total"]) ?? sum(count(input["noCache"]), cachedInput, cacheWrite),
    cachedInput,
    cacheWrite,
    output: count(output["total"]) ?? sum(count(output["text"]), count(output["reasoning"])),
  };
}

/** Adds what is only in the total: some providers do not say reasoning as output. */
function withUnnamed(output: number | undefined, input = 0, total = 0): number | undefined {
  if (total <= input) return output;
  return Math.max(output ?? 0, total - input);
}
