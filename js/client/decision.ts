import { isInteger } from "../durations.ts";
import { TollgateError } from "../error.ts";
import type { Decision } from "../types.ts";

/** A decision in JSON, where never is null. */
type Wire = Omit<Decision, "retryAfter"> & { readonly retryAfter: number | null };

const isText = (value: unknown): boolean => typeof value === "string";

/** A wait may be longer than the largest count, and must fit into 64 bits. */
const isWait = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 63;

function isDecision(answer: unknown): answer is Wire {
  const { allowed, count, limit, remaining, retryAfter, resetAfter, policy, violated } = (answer ??
    {}) as Partial<Wire>;
  return (
    typeof allowed === "boolean" &&
    [count, limit, remaining].every((number) => isInteger(number)) &&
    (retryAfter === null || isWait(retryAfter)) &&
    isWait(resetAfter) &&
    isText(policy) &&
    Array.isArray(violated) &&
    violated.every(isText)
  );
}

/** Reads a decision of the Worker's. Throws if it is none. */
export function decisionOf(answer: unknown): Decision {
  if (!isDecision(answer)) throw senseless("decision");
  return { ...answer, retryAfter: answer.retryAfter ?? Number.POSITIVE_INFINITY };
}

/** The error of an answer that is not what was asked for: as good as none. */
export const senseless = (expected: string): TollgateError =>
  new TollgateError("unanswered", `the Worker answered something that is no ${expected}`);
