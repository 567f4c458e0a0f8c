import { TollgateError } from "../errors/error.ts";
import { fromJson, type JsonDecision } from "../http/json-decision.ts";
import { isInteger } from "../policy/durations.ts";
import type { Decision } from "../types.ts";

const isText = (value: unknown): boolean => typeof value === "string";

/** Returns true for a wait. It may be longer than the largest safe integer, and must fit into 64 bits. */
const isWait = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 63;

function isDecision(value: unknown): value is JsonDecision {
  const { allowed, count, limit, remaining, retryAfter, resetAfter, moreAfter, policy, violated } = (value ??
    {}) as Partial<JsonDecision>;
  return (
    typeof allowed === "boolean" &&
    [count, limit, remaining].every((number) => isInteger(number)) &&
    (retryAfter === null || isWait(retryAfter)) &&
    isWait(resetAfter) &&
    isWait(moreAfter) &&
    isText(policy) &&
    Array.isArray(violated) &&
    violated.every(isText)
  );
}

/** Reads a decision from the Worker's JSON. Throws if it is invalid. */
export function decisionOf(value: unknown): Decision {
  if (!isDecision(value)) throw invalidResponse("decision");
  return fromJson(value);
}

/** Returns the error for an invalid response, after which `onError` decides as if there were none. */
export const invalidResponse = (expected: string): TollgateError =>
  new TollgateError("unanswered", `the Worker's response is not a ${expected}`);
