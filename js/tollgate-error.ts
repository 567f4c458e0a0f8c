import type { ErrorCode } from "./error.ts";

/**
 * An error in an argument, or a call that could not be done: never a denial. Nothing has changed when it is thrown.
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
  /** The kind of error, for programs. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
