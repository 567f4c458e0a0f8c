// A limit of 0, which a plan of a customer may have: it denies all, and no limiter is asked.

import type { Decision, Policies, Policy } from "../types.ts";

/** Returns the name of the first policy with a limit or capacity of 0; undefined if there is none. */
export function closedPolicy(policies: Policies | undefined): string | undefined {
  for (const policy of [policies ?? []].flat() as readonly Policy[]) {
    const { limit, capacity, name, algorithm } = (policy ?? {}) as {
      limit?: number;
      capacity?: number;
    } & Partial<Policy>;
    if (limit === 0 || capacity === 0) return String(name ?? algorithm);
  }
  return undefined;
}

/** Returns the denial of a hit that no time makes possible. */
export const closedDecision = (policy: string): Decision => ({
  allowed: false,
  count: 0,
  limit: 0,
  remaining: 0,
  retryAfter: Number.POSITIVE_INFINITY,
  resetAfter: 0,
  moreAfter: Number.POSITIVE_INFINITY,
  policy,
  violated: [policy],
});
