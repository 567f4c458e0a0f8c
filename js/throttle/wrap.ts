import { invalidField } from "../errors/error.ts";
import type { AcquireOptions, BasicThrottle } from "./basic-throttle.ts";
import { checkAcquireOptions, checkFromZero } from "./checks.ts";
import type { Delays } from "./delays.ts";

/** The options of `wrap`. */
export interface WrapOptions extends AcquireOptions {
  /**
   * For events of a page, where some calls may be dropped: `"leading"` lets a call through at once or drops it,
   * `"trailing"` keeps the last call that had to wait and drops the others, `"debounce"` keeps the last call before a
   * pause of `wait`. By default every call waits its turn.
   */
  readonly edge?: "leading" | "trailing" | "debounce" | undefined;
  /** How long no further call may come before a debounced one gets in line, in milliseconds. */
  readonly wait?: number | undefined;
}

/** A wrapped function. A call that was dropped returns undefined. */
export type Wrapped<Args extends unknown[], Result> = (...args: Args) => Promise<Result | undefined>;

/**
 * Returns a function each call of which waits its turn.
 * @internal
 */
export function wrapped<Args extends unknown[], Result>(
  throttle: BasicThrottle,
  delays: Delays,
  work: (...args: Args) => Result | PromiseLike<Result>,
  { edge, wait, ...options }: WrapOptions,
): Wrapped<Args, Result> {
  if (typeof work !== "function") throw invalidField("invalid_option", "work", work, "a function");
  checkAcquireOptions(options);
  if (edge !== "debounce" && wait !== undefined)
    throw invalidField("invalid_option", "wait", wait, 'used without edge: "debounce"');
  if (edge === "debounce" && wait === undefined)
    throw invalidField("invalid_option", "wait", wait, "a number of milliseconds, 0 or more");
  checkFromZero({ wait }, "wait");
  if (edge === "debounce") return debounced(throttle, delays, work, options, wait as number);
  if (edge === "trailing") return trailing(throttle, work, options);
  if (edge !== "leading" && edge !== undefined)
    throw invalidField("invalid_option", "edge", edge, '"leading", "trailing" or "debounce"');
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

async function isAllowedNow(throttle: BasicThrottle, options: AcquireOptions): Promise<boolean> {
  try {
    return (await throttle.acquire({ ...options, maxWait: 0 })).allowed;
  } catch (error) {
    if ((error as { code?: string }).code === "max_wait") return false;
    throw error;
  }
}

function trailing<Args extends unknown[], Result>(
  throttle: BasicThrottle,
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

function debounced<Args extends unknown[], Result>(
  throttle: BasicThrottle,
  delays: Delays,
  work: (...args: Args) => Result | PromiseLike<Result>,
  options: AcquireOptions,
  wait: number,
): Wrapped<Args, Result> {
  let drop = () => {};
  /** A turn that was asked for: a later call takes it if the one that asked was dropped. */
  let turn: Promise<unknown> | undefined;
  return function (this: unknown, ...args) {
    drop();
    return new Promise((resolve, reject) => {
      let isDropped = false;
      const inTurn = async () => {
        turn ??= throttle.acquire(options);
        try {
          await turn;
        } catch (error) {
          turn = undefined;
          throw error;
        }
        if (isDropped) return undefined;
        turn = undefined;
        // A call that runs is not dropped.
        drop = () => {};
        return work.apply(this, args);
      };
      const stop = delays.start(wait, options.signal, () => inTurn().then(resolve, reject), reject);
      drop = () => {
        isDropped = true;
        stop();
        resolve(undefined);
      };
    });
  };
}
