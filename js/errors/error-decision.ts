import type { Decision } from "../types.ts";

/** The `retryAfter` of a denial by `onError`, in milliseconds: without one, clients would repeat the hit at once. */
const retryAfter = 1_000;

/**
 * Returns the decision of `onError` for a hit that no limiter decided.
 * @internal
 */
export const errorDecision = (allowed: boolean, limit = 0, policy = ""): Decision => ({
  allowed,
  count: 0,
  limit,
  remaining: 0,
  retryAfter: allowed ? 0 : retryAfter,
  resetAfter: 0,
  moreAfter: allowed ? 0 : retryAfter,
  policy,
  violated: [],
  reason: "error",
});
