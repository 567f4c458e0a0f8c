import { invalidTimeText } from "./core/generated.ts";
import { fill, inWords, TollgateError } from "./error.ts";

const max = Number.MAX_SAFE_INTEGER;

/** Returns true for a time that Rust accepts: milliseconds since the epoch, perhaps with a fraction. */
export const isTime = (now: unknown): now is number => typeof now === "number" && now >= 0 && now <= max;

/** Returns the error for a clock that returned no time. */
export const invalidTime = (now: unknown): TollgateError =>
  new TollgateError("invalid_time", fill(invalidTimeText, { found: inWords(now), max }));

/** Checks that a clock returned a time. */
export function checkTime(now: unknown): number {
  if (!isTime(now)) throw invalidTime(now);
  return now;
}
