import { isStoreError } from "../errors/store-error.ts";
import type { Costs, Decision, Key } from "../types.ts";
import { callerFields, takenCaller, unpublished } from "./caller.ts";
import { errors } from "./channels.ts";
import type { DecidedBy, DecidedOperation, ErrorMessage, LimiterKind, OnDecision } from "./messages.ts";
import type { Outage } from "./outage.ts";
import { Publisher } from "./publisher.ts";

/** How a decision was made, if not by the limiter and its store. */
interface Origin {
  readonly by: DecidedBy;
  /** The error of the store before it. */
  readonly error?: unknown;
}

const ordinary: Origin = { by: "limiter" };

/** Publishes the decisions and the errors of one limiter whose keys are outside the process. */
export class AsyncPublisher extends Publisher {
  /** The outages of the limiter's store. */
  outage: Outage;
  readonly #origins = new WeakMap<Decision, Origin>();

  constructor(limiter: LimiterKind, onDecision: OnDecision | undefined, outage: Outage) {
    super(limiter, onDecision);
    this.outage = outage;
  }

  override get isHeard(): boolean {
    return super.isHeard || errors?.hasSubscribers === true;
  }

  /** Notes that a decision was made without the store, from a lease or by a remembered denial. Returns it. */
  local(decision: Decision): Decision {
    if (this.isHeard) this.#origins.set(decision, { by: decision.allowed ? "lease" : "cache" });
    return decision;
  }

  /** Notes that a decision was made after an error of the store. Returns it. */
  without(decision: Decision, error: unknown): Decision {
    const by = decision.reason === "error" ? "onError" : "fallback";
    this.outage.failed(error, by === "fallback" ? by : decision.allowed ? "allow" : "deny");
    if (this.isHeard) this.#origins.set(decision, { by, error });
    return decision;
  }

  /** Returns the result of `decide`, and publishes its decision or error. */
  async awaited<Result>(
    operation: DecidedOperation,
    key: Key,
    cost: Costs,
    decide: () => Promise<Result>,
    decisionIn: (result: Result) => Decision,
  ): Promise<Result> {
    const caller = takenCaller();
    const start = performance.now();
    let result: Result;
    try {
      result = await decide();
    } catch (error) {
      // A guard publishes what it makes of the error.
      if (!caller && isStoreError(error)) this.#fail({ operation, key, error, verdict: "throw" });
      throw error;
    }
    const duration = performance.now() - start;
    const decision = decisionIn(result);
    const { by, error } = this.#origins.get(decision) ?? ordinary;
    const fields = callerFields(caller);
    if (error !== undefined) {
      const verdict = by === "fallback" ? by : decision.allowed ? "allow" : "deny";
      this.#fail({ operation, key, error, verdict, ...fields });
    }
    const { allowed } = decision;
    if (caller !== null) this.publish({ operation, key, cost, decision, allowed, by, duration, ...fields });
    return result;
  }

  #fail(message: Omit<ErrorMessage, "limiter">): void {
    const { limiter } = this;
    unpublished(() => {
      if (errors?.hasSubscribers) errors.publish({ limiter, ...message });
    });
  }
}
