import type { ErrorCode } from "./error.ts";

/**
 * An invalid argument, or a call that failed; never a denial. No state has changed when it is thrown.
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
  /** The same for all errors of the package. */
  override readonly name = "TollgateError";
  /** The kind of error, for programs. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
