import { replay } from "../core/generated.ts";
import { inWords, TollgateError } from "../error.ts";

/** The error for an operation that Redis did not answer. It may have been counted. */
export const unanswered = (key: string, how: string, cause?: unknown): TollgateError =>
  new TollgateError(
    "unanswered",
    `Redis did not answer for ${inWords(key)}: ${how}; see docs/redis.md`,
    cause === undefined ? undefined : { cause },
  );

/** The error for a value in Redis that cannot be replayed, by the status of the replay. */
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

/** Returns true for the reply of a Redis that does not know the script. */
export const isNoScript = (error: unknown): boolean =>
  String((error as { message?: unknown } | null)?.message).startsWith("NOSCRIPT");
