import type { Decision, Extension, Settlement } from "../types.ts";

/**
 * A decision in JSON, where never is null.
 * @internal
 */
export type PlainDecision = Omit<Decision, "retryAfter"> & { readonly retryAfter: number | null };

/**
 * A lease in JSON.
 * @internal
 */
export interface PlainLease {
  readonly id: string;
  readonly amount: number;
  readonly life: number;
  readonly countsDown: boolean;
}

/**
 * What an object answers to a question in JSON.
 * @internal
 */
export type Answer =
  | { readonly decision: PlainDecision }
  | { readonly number: number }
  | {
      readonly leased: {
        readonly decision: PlainDecision;
        readonly lease: PlainLease | null;
      };
    }
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
