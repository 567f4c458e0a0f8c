import { invalidField } from "../errors/error.ts";
import { checkAcquireOptions } from "./checks.ts";
import type { AcquireOptions, Throttle } from "./throttle.ts";

/** The options of `wrap`. */
export interface WrapOptions extends AcquireOptions {
  /**
   * For events of a page, where some calls may be dropped: `"leading"` lets a call through at once or drops it,
   * `"trailing"` keeps the last call that had to wait and drops the others. By default every call waits its turn.
   */
  readonly edge?: "leading" | "trailing" | undefined;
}

/** A wrapped function. A call that was dropped returns undefined. */
export type Wrapped<Args extends unknown[], Result> = (...args: Args) => Promise<Result | undefined>;

/**
 * Returns a function each call of which waits its turn.
 * @internal
 */
export function wrapped<Args extends unknown[], Result>(
  throttle: Throttle,
  work: (...args: Args) => Result | PromiseLike<Result>,
  { edge, ...options }: WrapOptions,
): Wrapped<Args, Result> {
  if (typeof work !== "function") throw invalidField("invalid_option", "work", work, "a function");
  checkAcquireOptions(options);
  if (edge === "trailing") return trailing(throttle, work, options);
  if (edge !== "leading" && edge !== undefined)
    throw invalidField("invalid_option", "edge", edge, '"leading" or "trailing"');
  if (edge === "leading") {
    return async function (this: unknown, ...args) {
      return (await isAllowedNow(throttle, options)) ? work.apply(this, args) : undefined;
    };
  }
  // Not an async function: thousands may wait, and those take more memory.
  return function (this: unknown, ...args) {
    return throttle.acquire(options).then(() => work.apply(this, args));
  };
}

async function isAllowedNow(throttle: Throttle, options: AcquireOptions): Promise<boolean> {
  try {
    return (await throttle.acquire({ ...options, maxWait: 0 })).allowed;
  } catch (error) {
    if ((error as { code?: string }).code === "max_wait") return false;
    throw error;
  }
}

function trailing<Args extends unknown[], Result>(
  throttle: Throttle,
  work: (...args: Args) => Result | PromiseLike<Result>,
  options: AcquireOptions,
): Wrapped<Args, Result> {
  let latest = 0;
  let turn: Promise<unknown> | undefined;
  return async function (this: unknown, ...args) {
    latest += 1;
    const own = latest;
    // All calls wait at one place in the line; the last call takes the turn.
    turn ??= throttle.acquire(options).finally(() => {
      turn = undefined;
    });
    await turn;
    return own === latest ? work.apply(this, args) : undefined;
  };
}
