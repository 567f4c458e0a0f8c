import type { Decision } from "../types.ts";

/**
 * A decision in JSON, which has no infinity: a hit that never fits has a `retryAfter` of null.
 * @internal
 */
export type JsonDecision = Omit<Decision, "retryAfter"> & { readonly retryAfter: number | null };

/**
 * Returns a decision from JSON.
 * @internal
 */
export const fromJson = (decision: JsonDecision): Decision => ({
  ...decision,
  retryAfter: decision.retryAfter ?? Number.POSITIVE_INFINITY,
});

/**
 * Returns a decision for JSON.
 * @internal
 */
export const forJson = (decision: Decision): JsonDecision => ({
  ...decision,
  retryAfter: Number.isFinite(decision.retryAfter) ? decision.retryAfter : null,
});
