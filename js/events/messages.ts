import type { Costs, Decision, Key } from "../types.ts";

/** An operation whose decisions are published. */
export type DecidedOperation = "hit" | "reserve" | "hitAll";

/** Where the keys of a limiter are: a Durable Object is `"object"`, a limiter that is not Tollgate's `"other"`. */
export type LimiterKind = "memory" | "redis" | "store" | "remote" | "object" | "other";

/**
 * How a decision was made: by the limiter and its store, from a lease, by a remembered denial, or while the store did not
 * respond, by `fallback` or `onError`.
 */
export type DecidedBy = "limiter" | "lease" | "cache" | "fallback" | "onError";

/** A decision, as a limiter passes it to `onDecision` and publishes it on the channel `tollgate:decision`. */
export interface DecisionMessage {
  /** Where the keys of the limiter are. */
  readonly limiter: LimiterKind;
  /** The operation. */
  readonly operation: DecidedOperation;
  /** The key. */
  readonly key: Key;
  /** The cost: one number, or one for each policy by its name. */
  readonly cost: Costs;
  /** The decision. */
  readonly decision: Decision;
  /** Whether the key may act now: `decision.allowed`, and under `hitAll` whether all keys may. */
  readonly allowed: boolean;
  /** How the decision was made. */
  readonly by: DecidedBy;
  /** How long it took, in milliseconds. */
  readonly duration: number;
  /** The adapter, if a guard asked: `"express"`, `"fastify"`, `"hono"`, `"koa"` or `"fetch"`. */
  readonly adapter?: string;
  /** The framework's request, if a guard asked. */
  readonly request?: unknown;
}

/** The option `onDecision` of a limiter. It is called after the decision; what it throws is only logged. */
export type OnDecision = (decision: Decision, message: DecisionMessage) => unknown;

/** An error of a limiter whose store failed, on the channel `tollgate:error`. */
export interface ErrorMessage {
  /** Where the keys of the limiter are. */
  readonly limiter: LimiterKind;
  /** The operation; `hitAll` over several processes is one `reserve` for each key. */
  readonly operation: DecidedOperation;
  /** The key. */
  readonly key: Key;
  /** The error. */
  readonly error: unknown;
  /** What happens to the hit or the request: the value of `onError`, or `"fallback"`. */
  readonly verdict: "allow" | "deny" | "throw" | "fallback";
  /** The adapter, if a guard asked. */
  readonly adapter?: string;
  /** The framework's request, if a guard asked. */
  readonly request?: unknown;
}
