import type { Decision, Extension, Settlement } from "../types.ts";

/**
 * What an object answers: eight numbers for a decision, followed by the id of a reservation; one for anything else; in a
 * text, which RPC carries fastest.
 */
export type Numbers = string;

/**
 * A decision in JSON, where never is null.
 * @internal
 */
export type PlainDecision = Omit<Decision, "retryAfter"> & { readonly retryAfter: number | null };

/**
 * What an object answers to a question in JSON.
 * @internal
 */
export type Answer =
  | { readonly decision: PlainDecision }
  | { readonly number: number }
  | { readonly reset: boolean }
  | {
      readonly reserved: {
        readonly decision: PlainDecision;
        readonly id: string | null;
        readonly expiresAt: number | null;
      };
    }
  | {
      readonly settled: {
        readonly settlement: Settlement | Extension;
        readonly id: string | null;
        readonly expiresAt: number | null;
      };
    }
  | { readonly error: Mistake };

/** What came of asking an object for a reservation. */
export interface Reserved {
  /** Whether the amount is set aside. */
  readonly allowed: boolean;
  /** The decision. Its numbers include what was reserved. */
  readonly decision: Decision;
  /** The id, by which it is settled, also after a restart; empty if it was denied. */
  readonly id: string;
  /** When it is charged in full unless it is settled, in milliseconds since the epoch; 0 if it was denied. */
  readonly expiresAt: number;
}

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
 * A decision out of JSON, where never is null.
 * @internal
 */
export const unplain = (decision: PlainDecision): Decision => ({
  ...decision,
  retryAfter: decision.retryAfter ?? Number.POSITIVE_INFINITY,
});

/**
 * A reservation out of an answer.
 * @internal
 */
export function reservedBy(answer: Answer): Reserved {
  const { decision, id, expiresAt } = (answer as Extract<Answer, { reserved: unknown }>).reserved;
  return {
    allowed: decision.allowed,
    decision: unplain(decision),
    id: id ?? "",
    expiresAt: expiresAt ?? 0,
  };
}

/**
 * What became of a reservation, out of an answer.
 * @internal
 */
export const settlementOf = <Word extends Settlement | Extension>(answer: Answer): Word =>
  (answer as Extract<Answer, { settled: unknown }>).settled.settlement as Word;

/**
 * A decision as JSON has it: never is null.
 * @internal
 */
export const plain = (decision: Decision) => ({
  ...decision,
  retryAfter: Number.isFinite(decision.retryAfter) ? decision.retryAfter : null,
});
