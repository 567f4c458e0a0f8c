import type { ErrorCode } from "./error.ts";

/** The same in every copy of the package. */
const brand: unique symbol = Symbol.for("tollgate.error");

/** Whether a value is an error of any copy of the package: a program may have it as ES module and as CommonJS. */
function isInstance(this: unknown, value: unknown): boolean {
  if (this === TollgateError) return Object(value)[brand] === true;
  // A class that extends it has instances of its own.
  return Function.prototype[Symbol.hasInstance].call(this, value);
}

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
    // Not a static method: where classes are compiled to functions, that would be an assignment to what cannot be assigned.
    Object.defineProperty(TollgateError, Symbol.hasInstance, { value: isInstance });
  }

  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  /** @internal */
  get [brand](): true {
    return true;
  }
}
