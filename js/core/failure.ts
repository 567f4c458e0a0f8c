import { type ErrorCode, inWords, TollgateError, wrongAmount } from "../error.ts";
import { text } from "./border.ts";

/** What Rust complained of: the code, a line's end, the message. */
function complaint(): TollgateError {
  const [code, message] = text().split("\n", 2);
  return new TollgateError(code as ErrorCode, message as string);
}

/** What Rust answered, unless it complained. */
export function checked(number: number): number {
  if (number < 0) throw complaint();
  return number;
}

/** The error behind a negative status; `src/js.rs` knows the same. */
export function failure(status: number, cost: unknown, now: unknown): TollgateError {
  if (status === -1) return wrongAmount("cost", cost);
  return status === -2 ? wrongTime(now) : complaint();
}

/** The error for a cost or a time that is not even a number. */
export const notNumbers = (cost: unknown, now: unknown): TollgateError =>
  typeof cost === "number" ? wrongTime(now) : wrongAmount("cost", cost);

const most = Number.MAX_SAFE_INTEGER;

/** Whether a clock's answer is a time, as Rust would have it. */
export const isTime = (now: unknown): now is number => typeof now === "number" && now >= 0 && now <= most;

const wrongTime = (now: unknown) =>
  new TollgateError(
    "invalid_time",
    `clock: ${inWords(now)} is not a time; it must answer milliseconds since the epoch, from 0 to ${most}`,
  );
