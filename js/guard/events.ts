import { type Caller, calledBy, callerFields } from "../events/caller.ts";
import { decisions, errors } from "../events/channels.ts";
import type { DecidedOperation, ErrorMessage } from "../events/messages.ts";
import { publish } from "../events/publisher.ts";
import type { Costs, Decision, Key } from "../types.ts";
import { after } from "./after.ts";
import type { Source } from "./source.ts";
import type { Awaitable } from "./types.ts";

/** What a guard asks a source. */
interface Question {
  readonly adapter: string;
  readonly request: unknown;
  readonly source: Source;
  readonly operation: DecidedOperation;
  readonly key: Key;
  readonly cost: Costs;
}

/**
 * Returns the result of `decide`. If the channels have subscribers, its decision is published once, with the request: by
 * the limiter, or here if the limiter publishes none.
 */
export function published<Result extends { readonly decision: Decision }>(
  { adapter, request, source, operation, key, cost }: Question,
  decide: () => Awaitable<Result>,
): Awaitable<Result> {
  if (!decisions?.hasSubscribers && !errors?.hasSubscribers) return decide();
  const caller: Caller = { adapter, request, isTaken: false };
  const start = performance.now();
  return after(calledBy(caller, decide), (result) => {
    const { decision } = result;
    const { limiter } = source;
    const { allowed } = decision;
    const by = decision.reason === "error" ? "onError" : "limiter";
    const duration = performance.now() - start;
    if (!caller.isTaken)
      publish({ limiter, operation, key, cost, decision, allowed, by, duration, ...callerFields(caller) });
    return result;
  });
}

/** Publishes an error, if the channel has subscribers. */
export function publishError(message: ErrorMessage): void {
  if (errors?.hasSubscribers) errors.publish(message);
}
