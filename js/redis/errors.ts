import { inWords, TollgateError } from "../errors/error.ts";
import { replay } from "../wasm/generated.ts";

/** Returns the error for an operation without a result from Redis. The operation may have been counted. */
export const unanswered = (key: string, reason: string, cause?: unknown): TollgateError =>
  new TollgateError(
    "unanswered",
    `Redis did not answer for ${inWords(key)}: ${reason}; see docs/redis.md`,
    cause === undefined ? undefined : { cause },
  );

/** Returns the error for a value in Redis that cannot be replayed, by the status of the replay. */
export function unreadableValue(key: string, status: number, start = ""): TollgateError {
  const shown = start === "" ? "" : `; it begins with ${inWords(start)}`;
  switch (status) {
    case replay.status.outOfMemory:
      return new TollgateError("out_of_memory", `there is no memory for the log of ${inWords(key)} in Redis`);
    case replay.status.version:
      return new TollgateError(
        "unsupported_version",
        `the value of ${inWords(key)} in Redis is of another version of this library${shown}`,
      );
    default:
      return new TollgateError(
        "invalid_state",
        `the value of ${inWords(key)} in Redis is not a log that this library wrote${shown}`,
      );
  }
}

/** Returns the error for a call whose key lost its states in a trap of the wasm, which is the cause if it was this call's. */
export const stateLost = (cause?: unknown): TollgateError =>
  new TollgateError(
    "state_lost",
    "the states of this limiter were lost in a trap; they are read again",
    cause === undefined ? undefined : { cause },
  );

/** Returns the error for an operation on a limiter that was disposed of. */
export const disposed = (): TollgateError => new TollgateError("disposed", "the limiter was disposed of");

/** Returns the error for an operation that the replay rejected. */
export const rejectedOperation = (): TollgateError =>
  new TollgateError("invalid_operation", "the operation does not fit the policies in force");

/** Returns true for Redis's error that it does not have the script. */
export const isNoScript = (error: unknown): boolean => begins(error, "NOSCRIPT");

/** Returns true for the error of a node of a Cluster that the keys of a call are in several slots. */
export const isCrossSlot = (error: unknown): boolean => begins(error, "CROSSSLOT");

const begins = (error: unknown, code: string): boolean =>
  String((error as { message?: unknown } | null)?.message).startsWith(code);
