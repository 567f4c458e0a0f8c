import { printable } from "../printable.ts";
import {
  arrayText,
  fractionText,
  integerText,
  keyText,
  negativeText,
  objectText,
  outOfMemoryText,
  rejectedText,
  requiredText,
  reserveOnlyText,
  tooLargeText,
} from "../wasm/generated.ts";
import { TollgateError } from "./tollgate-error.ts";

export { TollgateError };

/** The kind of an error, by a name that does not change between versions. */
export type ErrorCode =
  | "invalid_policy"
  | "unknown_algorithm"
  | "unknown_field"
  | "invalid_key"
  | "invalid_address"
  | "invalid_cost"
  | "invalid_count"
  | "invalid_time"
  | "invalid_option"
  | "invalid_operation"
  | "invalid_decision"
  | "policy_mismatch"
  | "unknown_policy"
  | "full"
  | "reserve_only"
  | "ban_only"
  | "invalid_reservation"
  | "invalid_state"
  | "unsupported_version"
  | "out_of_memory"
  | "state_lost"
  | "disposed"
  | "queue_full"
  | "max_wait"
  | "cleared"
  | "wasm_blocked"
  | "invalid_request"
  | "unauthorized"
  | "unanswered"
  | "contended";

/**
 * Replaces the `{names}` in a text.
 * @internal
 */
export const fill = (text: string, values: Readonly<Record<string, unknown>>): string =>
  text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));

/** The most characters of a string that an error shows. */
const mostShown = 64;

/** Returns a string in quotes, on one line, cut after `mostShown` characters. */
function quoted(text: string): string {
  const characters = [...text.slice(0, 2 * mostShown + 2)];
  const short = characters.slice(0, mostShown).join("") + (characters.length > mostShown ? "…" : "");
  return `"${printable(short).replace(/["\\]/g, "\\$&")}"`;
}

/**
 * Returns a value for an error message.
 * @internal
 */
export function inWords(value: unknown): string {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "number":
      if (value > Number.MAX_SAFE_INTEGER) return tooLargeText;
      // Rust shows the same numbers.
      if (/^(\d+|NaN|-?\d{1,9}(\.\d{1,3})?)$/.test(String(value + 0))) return String(value + 0);
      return value < 0 ? negativeText : fractionText;
    case "bigint":
      return `${String(value).slice(0, mostShown)}n`;
    case "object":
      if (value === null) return "null";
      return isArray(value) ? arrayText : objectText;
    case "boolean":
    case "undefined":
      return String(value);
    default:
      return `a ${typeof value}`;
  }
}

/** Returns true for an array; false for a revoked proxy, for which `Array.isArray` throws. */
function isArray(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/**
 * Returns the range of an integer, in words.
 * @internal
 */
export const integer = (min: number, max: number = Number.MAX_SAFE_INTEGER): string =>
  fill(integerText, { min, max });

/**
 * Returns the error for an invalid cost or count.
 * @internal
 */
export const wrongAmount = (field: "cost" | "count", amount: unknown, max?: number): TollgateError =>
  invalidField(`invalid_${field}`, field, amount, integer(0, max));

/**
 * Returns the error for an invalid cost of `inc`, which may be negative.
 * @internal
 */
export const wrongInc = (amount: unknown): TollgateError =>
  invalidField("invalid_cost", "cost", amount, integer(-Number.MAX_SAFE_INTEGER));

/**
 * The accepted keys of a store outside the process, in words.
 * @internal
 */
export const keyAccepts: string = keyText;

/**
 * Returns the error for a field whose value is invalid or missing.
 * @internal
 */
export const invalidField = (
  code: ErrorCode,
  field: string,
  found: unknown,
  expected: string,
): TollgateError => fieldError(code, field, found === undefined ? undefined : inWords(found), expected);

/**
 * Returns the same error for a value that is already in words; `undefined` if it is missing.
 * @internal
 */
export function fieldError(
  code: ErrorCode,
  field: string,
  found: string | undefined,
  expected: string,
  forms = expected,
): TollgateError {
  return found === undefined
    ? worded(code, requiredText, { field, expected: forms })
    : worded(code, rejectedText, { field, found, expected });
}

/**
 * Returns the error of a text with `{names}`.
 * @internal
 */
export const worded = (
  code: ErrorCode,
  text: string,
  values: Readonly<Record<string, unknown>>,
): TollgateError => new TollgateError(code, fill(text, values));

/**
 * Returns the error for a call that found no memory.
 * @internal
 */
export const outOfMemory = (): TollgateError => new TollgateError("out_of_memory", outOfMemoryText);

/**
 * Returns the error for an operation on a policy that only counts reservations.
 * @internal
 */
export const reserveOnly = (name: string | undefined, operation: string): TollgateError =>
  worded("reserve_only", reserveOnlyText, { policy: inWords(name), operation });
