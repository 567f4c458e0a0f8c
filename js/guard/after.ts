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
