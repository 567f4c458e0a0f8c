import { invalidField, type TollgateError } from "../errors/error.ts";
import { isWellFormed } from "../well-formed.ts";

/**
 * The parts of the key by which a rule of the gateway counts, with their values, in the rule's order: `"ip=192.0.2.7"`,
 * `"path=/search"`, `"header:X-Api-Key=k"`, `"cookie:id=c"` or `"constant:login"`. The Worker normalises the values as it
 * normalises those of a request. Or the whole key as the log prints it: `"/ip=9:192.0.2.7"`.
 */
export type RuleParts = string | readonly string[];

/**
 * The field of an item that names its key: a key of the HTTP API, or the parts of the key of a rule.
 * @internal
 */
export type KeyField = { readonly key: string } | { readonly parts: readonly string[] };

/** The most bytes of all parts as JSON: a hundred keys fit in a request. */
const maxLength = 16_384;

/**
 * Copies the parts of a key. Checks that they are strings that can be encoded as UTF-8; the Worker parses them.
 * @internal
 */
export function copiedParts(parts: RuleParts): readonly string[] {
  const copy: readonly unknown[] = Array.isArray(parts) ? [...parts] : [parts];
  if (!copy.every(isText) || bytesOf(copy) > maxLength) throw wrongParts(parts);
  return copy;
}

const isText = (part: unknown): part is string => typeof part === "string" && isWellFormed(part);

const bytesOf = (parts: readonly string[]): number => new TextEncoder().encode(JSON.stringify(parts)).length;

/**
 * Returns the error of invalid parts.
 * @internal
 */
export const wrongParts = (parts: unknown): TollgateError =>
  invalidField(
    "invalid_key",
    "parts",
    parts,
    `a string such as "ip=192.0.2.7", or a list, of at most ${maxLength} bytes in JSON, without lone surrogates`,
  );
