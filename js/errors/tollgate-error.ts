import type { ErrorCode } from "./error.ts";

/** The same in every copy of the package. */
const brand: unique symbol = Symbol.for("tollgate.error");

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

  /** Returns true for errors of every copy of the package: one program may have it as ES module and as CommonJS. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: a class that extends this one has instances of its own.
    if (this === TollgateError) return Object(value)[brand] === true;
    // biome-ignore lint/complexity/noThisInStatic: as above.
    return Function.prototype[Symbol.hasInstance].call(this, value);
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
