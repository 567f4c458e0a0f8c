import { TollgateError } from "../errors/error.ts";
import type { Awaitable } from "./types.ts";

/** Returns true for a promise. */
export const isPromise = <Value>(value: Awaitable<Value>): value is PromiseLike<Value> =>
  typeof (value as { readonly then?: unknown } | undefined)?.then === "function";

/** Calls `next` with a value, at once if it is not a promise, so that a synchronous limiter costs no promise. */
export const after = <Value, Result>(
  value: Awaitable<Value>,
  next: (value: Value) => Awaitable<Result>,
): Awaitable<Result> => {
  if (!isPromise(value)) return next(value);
  // The `then` of another object may call back twice, or return nothing.
  return value instanceof Promise ? value.then(next) : Promise.resolve(value).then(next);
};

/**
 * Rejects with `unanswered` if the promise takes longer than `timeout` milliseconds; `late` is then called with the
 * value when it arrives after all.
 */
export const before = <Value>(
  promise: PromiseLike<Value>,
  timeout: number,
  late: (value: Value) => void,
): Promise<Value> =>
  new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      const message = `the limiter did not respond within ${timeout} ms; see docs/frameworks.md`;
      reject(new TollgateError("unanswered", message));
    }, timeout);
    promise.then(
      (value) => {
        clearTimeout(timer);
        if (isLate) late(value);
        resolve(value);
      },
      (error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });

/** For `deliver`, where the value is not used. */
export const ignore = (): void => {};

/** Passes the value of `make` to `use`, at once if it is not a promise, and an error to `fail`. */
export function deliver<Value>(
  make: () => Awaitable<Value>,
  use: (value: Value) => void,
  fail: (error: unknown) => void,
): void {
  let value: Awaitable<Value>;
  try {
    value = make();
  } catch (error) {
    fail(error);
    return;
  }
  if (isPromise(value)) Promise.resolve(value).then(use).then(undefined, fail);
  else use(value);
}
