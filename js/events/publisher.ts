import type { Costs, Decision, Key } from "../types.ts";
import { callerFields, takenCaller, unpublished } from "./caller.ts";
import { decisions } from "./channels.ts";
import { listened } from "./listened.ts";
import type { DecidedOperation, DecisionMessage, LimiterKind, OnDecision } from "./messages.ts";

/** Publishes a decision to a listener, if there is one, and on the channel. What a listener hits is not published. */
export function publish(message: DecisionMessage, onDecision?: OnDecision): void {
  if (onDecision) listened(() => onDecision(message.decision, message));
  if (decisions?.hasSubscribers) unpublished(() => decisions?.publish(message));
}

/** Returns a limiter whose decisions are not published. */
export function muted<Limiter extends { readonly publisher: Publisher }>(limiter: Limiter): Limiter {
  limiter.publisher.isMuted = true;
  return limiter;
}

/** Publishes the decisions of one limiter. */
export class Publisher {
  readonly limiter: LimiterKind;
  /** Set if the limiter is a part of something else, which denies nobody. */
  isMuted = false;
  protected readonly onDecision: OnDecision | undefined;

  constructor(limiter: LimiterKind, onDecision: OnDecision | undefined) {
    this.limiter = limiter;
    this.onDecision = onDecision;
  }

  /** Whether a decision has a listener. */
  get isHeard(): boolean {
    return !this.isMuted && (this.onDecision !== undefined || decisions?.hasSubscribers === true);
  }

  /** Returns the decision of `decide`, and publishes it. */
  decided(operation: DecidedOperation, key: Key, cost: Costs, decide: () => Decision): Decision {
    const caller = takenCaller();
    const start = performance.now();
    const decision = decide();
    const duration = performance.now() - start;
    const { allowed } = decision;
    if (caller !== null)
      this.publish({ operation, key, cost, decision, allowed, duration, ...callerFields(caller) });
    return decision;
  }

  /** Publishes a decision of this limiter. */
  publish(message: Omit<DecisionMessage, "limiter" | "by"> & Partial<Pick<DecisionMessage, "by">>): void {
    publish({ limiter: this.limiter, by: "limiter", ...message }, this.onDecision);
  }
}
