import { whole } from "./numbers.ts";

/** What was wrong, by a name that does not change between versions. */
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
  | "invalid_state"
  | "unsupported_version"
  | "disposed"
  | "queue_full"
  | "max_wait"
  | "cleared"
  | "wasm_blocked"
  | "invalid_request"
  | "unauthorized"
  | "unanswered";

/**
 * A mistake in what was given: never a denial. Nothing was changed when it is thrown.
 *
 * @example
 * ```ts
 * import { RateLimiter, TollgateError } from "tollgate";
 *
 * try {
 *   new RateLimiter({ algorithm: "fix_window", limit: 0, scale: "1m" });
 * } catch (error) {
 *   if (error instanceof TollgateError) console.log(error.code); // => "invalid_policy"
 * }
 * ```
 */
export class TollgateError extends Error {
  /** The same for all of them. */
  override readonly name = "TollgateError";
  /** What was wrong, for code to act on. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * A value in words, for an error that names it.
 * @internal
 */
export function inWords(value: unknown): string {
  if (typeof value === "string") return value.length > 64 ? "a long string" : JSON.stringify(value);
  if (typeof value === "bigint") return `${String(value).slice(0, 64)}n`;
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  return typeof value === "function" || typeof value === "symbol" ? `a ${typeof value}` : String(value);
}

/**
 * The error for a cost or a count that is none.
 * @internal
 */
export const wrongAmount = (field: "cost" | "count", amount: unknown, most?: number): TollgateError =>
  refused(`invalid_${field}`, field, amount, whole(0, most));

/**
 * What a key is that leaves the process.
 * @internal
 */
export const keyAccepts = "a string of 1 to 1024 UTF-8 bytes";

/**
 * The error for a field that holds what it cannot.
 * @internal
 */
export const refused = (code: ErrorCode, field: string, found: unknown, accepts: string): TollgateError =>
  refusedAs(code, field, inWords(found), accepts);

/**
 * The same, where what was found is in words already.
 * @internal
 */
export const refusedAs = (code: ErrorCode, field: string, found: string, accepts: string): TollgateError =>
  new TollgateError(code, `${field}: ${found} is not accepted; give ${accepts}`);
