import type { ErrorCode } from "./error.ts";

const { [Symbol.hasInstance]: isInstance } = Function.prototype;

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

  static {
    // By its name, since a program may have the package as ES module and as CommonJS. Not a static method: where classes are
    // compiled to functions, that would be an assignment to what cannot be assigned.
    Object.defineProperty(TollgateError, Symbol.hasInstance, {
      value(this: unknown, found: unknown): boolean {
        // A class that extends it has instances of its own.
        return this === TollgateError
          ? found instanceof Error && found.name === "TollgateError"
          : isInstance.call(this, found);
      },
    });
  }

  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
