import { inWords, type TollgateError, worded } from "./errors/error.ts";
import { invalidTimeText } from "./wasm/generated.ts";

const max = Number.MAX_SAFE_INTEGER;

/** Returns true for a valid time: milliseconds since the epoch, perhaps with a fraction. */
export const isTime = (now: unknown): now is number => typeof now === "number" && now >= 0 && now <= max;

/** Returns the error for a clock that returned an invalid time. */
export const invalidTime = (now: unknown): TollgateError =>
  worded("invalid_time", invalidTimeText, { found: inWords(now), max });

/** Checks the time that a clock returned. */
export function checkTime(now: unknown): number {
  if (!isTime(now)) throw invalidTime(now);
  return now;
}
