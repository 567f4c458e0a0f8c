import { inWords, TollgateError, wrongAmount } from "../error.ts";
import { most } from "../numbers.ts";

/** Statuses below zero: why Rust did nothing. `src/js.rs` knows the same. */
const badCost = -1;
export const failed = -3;
export const noRoom = -4;

/** The error behind a status that says that the cost or the time was none. */
export const failure = (status: number, cost: unknown, now: unknown): TollgateError =>
  status === badCost ? wrongAmount("cost", cost) : wrongTime(now);

/** The error for a cost or a time that is not even a number. */
export const notNumbers = (cost: unknown, now: unknown): TollgateError =>
  typeof cost === "number" ? wrongTime(now) : wrongAmount("cost", cost);

/** Whether a clock's answer is a time, as Rust would have it. */
export const isTime = (now: unknown): now is number => typeof now === "number" && now >= 0 && now <= most;

const wrongTime = (now: unknown) =>
  new TollgateError(
    "invalid_time",
    `clock: ${inWords(now)} is not a time; it must answer milliseconds since the epoch, from 0 to ${most}`,
  );
