import type { Decision } from "../types.ts";

/** What an object answers: eight numbers for a decision, one for anything else; in a text, which RPC carries fastest. */
export type Numbers = string;

/** A mistake in what was asked, as an object answers it: an error's code may be lost on its way through RPC. */
export interface Mistake {
  /** What was wrong, for code to act on. */
  readonly code: string;
  /** The same in words. */
  readonly message: string;
}

/**
 * Whether a decision's numbers say that it was allowed.
 * @internal
 */
export const isAllowed = (numbers: Numbers): boolean => numbers.startsWith("1 ");

/**
 * The names of the policies that denied.
 * @internal
 */
export const violatedBy = (numbers: Numbers, names: readonly string[]): string[] =>
  namesIn(Number(numbers.slice(numbers.lastIndexOf(" "))), names);

/**
 * The names at the positions of the bits that are set.
 * @internal
 */
export const namesIn = (bits: number, names: readonly string[]): string[] =>
  bits === 0 ? [] : names.filter((_, position) => ((bits >> position) & 1) === 1);

/**
 * A decision with names in the place of positions. The order of the numbers is that of `src/cloudflare/wire.rs`.
 * @internal
 */
export function named(numbers: Numbers, names: readonly string[]): Decision {
  const [allowed, count, limit, remaining, retryAfter, resetAfter, policy, violated] = numbers
    .split(" ")
    .map(Number) as [number, number, number, number, number, number, number, number];
  return {
    allowed: allowed === 1,
    count,
    limit,
    remaining,
    retryAfter: retryAfter < 0 ? Number.POSITIVE_INFINITY : retryAfter,
    resetAfter,
    policy: names[policy] ?? "",
    violated: namesIn(violated, names),
  };
}

/**
 * A decision as JSON has it: never is null.
 * @internal
 */
export const plain = (decision: Decision) => ({
  ...decision,
  retryAfter: Number.isFinite(decision.retryAfter) ? decision.retryAfter : null,
});
