import { inWords, TollgateError } from "../errors/error.ts";

const guide = "see docs/own-store.md";

/** Returns the error for an operation that the store did not perform in time. It may have been counted. */
export const late = (key: string, timeout: number): TollgateError =>
  new TollgateError(
    "unanswered",
    `the store did not answer for ${inWords(key)} within ${timeout} ms; ${guide}`,
  );

/** Returns the error for a store that threw. The operation may have been counted. */
export const failed = (key: string, method: string, cause: unknown): TollgateError =>
  new TollgateError("unanswered", `${method} of the store failed for ${inWords(key)}: ${cause}; ${guide}`, {
    cause,
  });

/** Returns the error for an operation whose swaps all came too late. It was not counted. */
export const contended = (key: string, tries: number): TollgateError =>
  new TollgateError(
    "contended",
    `others changed ${inWords(key)} during each of ${tries} tries to swap its value; ${guide}`,
  );

/** Returns the error for a `swap` that returned something other than true or false. */
export const notBoolean = (found: unknown): TollgateError =>
  new TollgateError(
    "invalid_option",
    `store: swap returned ${inWords(found)}; return true if it stored the value, and false if not`,
  );

/** Returns the error for a value that no limiter wrote. */
export const unreadable = (key: string, problem: string): TollgateError =>
  new TollgateError("invalid_state", `the value of ${inWords(key)} in the store ${problem}; ${guide}`);

/** Returns the error of a state with the key that it belongs to. */
export const ofKey = (key: string, { code, message }: TollgateError): TollgateError =>
  new TollgateError(code, `the value of ${inWords(key)} in the store: ${message}; ${guide}`);

export const disposed = (): TollgateError =>
  new TollgateError("disposed", "this limiter was disposed of; make a new one");
