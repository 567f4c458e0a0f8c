import { fromJson, type JsonDecision } from "../../http/json-decision.ts";
import type { JsonException } from "../../policy/exception-fields.ts";
import type { Decision, Extension, Settlement } from "../../types.ts";

/**
 * A lease in JSON.
 * @internal
 */
export interface JsonLease {
  readonly id: string;
  readonly amount: number;
  readonly life: number;
  readonly countsDown: boolean;
}

/**
 * An object's result of an operation in JSON.
 * @internal
 */
export type Answer =
  | { readonly decision: JsonDecision }
  | { readonly number: number }
  | { readonly excepted: { readonly exception: JsonException["exception"]; readonly until: number } }
  | {
      readonly leased: {
        readonly decision: JsonDecision;
        readonly lease: JsonLease | null;
      };
    }
  | { readonly undoable: { readonly decision: JsonDecision; readonly id: string | null } }
  | { readonly undone: number }
  | { readonly reset: boolean }
  | {
      readonly reserved: {
        readonly decision: JsonDecision;
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
  | { readonly error: ErrorInfo };

/** The result of `reserve`. */
export interface Reserved {
  /** Whether the amount is reserved. */
  readonly allowed: boolean;
  /** The decision. Its numbers include the reserved amount. */
  readonly decision: Decision;
  /** The id, by which it is settled, also after a restart; empty if it was denied. */
  readonly id: string;
  /** When it is charged in full unless it is settled, in milliseconds since the epoch; 0 if it was denied. */
  readonly expiresAt: number;
}

/** The result of `hitUndoable`. */
export interface UndoableHit {
  /** Whether the hit was charged. */
  readonly allowed: boolean;
  /** The decision. */
  readonly decision: Decision;
  /** The id, by which the hit is undone; empty if it charged nothing. */
  readonly id: string;
}

/** An error as plain data: a thrown error may lose its code on its way through RPC. */
export interface ErrorInfo {
  /** The stable name of the error. */
  readonly code: string;
  /** The message. */
  readonly message: string;
}

/**
 * Returns the reservation of a result.
 * @internal
 */
export function reservedBy(answer: Answer): Reserved {
  const { decision, id, expiresAt } = (answer as Extract<Answer, { reserved: unknown }>).reserved;
  return {
    allowed: decision.allowed,
    decision: fromJson(decision),
    id: id ?? "",
    expiresAt: expiresAt ?? 0,
  };
}

/**
 * Returns the hit of a result that can be undone.
 * @internal
 */
export function undoableHit(answer: Answer): UndoableHit {
  const { decision, id } = (answer as Extract<Answer, { undoable: unknown }>).undoable;
  return { allowed: decision.allowed, decision: fromJson(decision), id: id ?? "" };
}

/**
 * Returns the settlement of a result.
 * @internal
 */
export const settlementOf = <Word extends Settlement | Extension>(answer: Answer): Word =>
  (answer as Extract<Answer, { settled: unknown }>).settled.settlement as Word;
