import { undoHit } from "../../limiter/undo.ts";
import { isAllowed, type Numbers } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import type { Isolate, LimitCheck } from "../gateway/isolate.ts";
import { TooManyNewKeys } from "../gateway/too-many-new-keys.ts";
import type { Admission } from "./admission.ts";
import { ask, Unanswered } from "./ask.ts";
import type { ErrorInfo } from "./decision.ts";

/** An object's reply to a hit that can be undone: its decision, and the id of the hit; empty if it charged nothing. */
export interface HitReply {
  readonly check: LimitCheck;
  readonly numbers: Numbers;
  readonly id: string;
}

/** The number of numbers of a decision, which the id follows. */
const numbersOfDecision = 9;

/** Sends the message of a check under the rule's limit on new keys. */
export type Admitted = (
  check: LimitCheck,
  send: (admission?: Admission) => Promise<Numbers | ErrorInfo>,
) => Promise<Numbers | ErrorInfo>;

/** Hits all objects of one decision over several keys at once. */
export function hitObjects(
  env: TollgateEnv,
  isolate: Isolate,
  checks: readonly LimitCheck[],
  admitted: Admitted,
): Promise<readonly (HitReply | Unanswered)[]> {
  return Promise.all(checks.map((check) => hitUndoable(env, isolate, check, admitted)));
}

/** Hits the object of one check. */
export async function hitUndoable(
  env: TollgateEnv,
  isolate: Isolate,
  check: LimitCheck,
  admitted: Admitted = (_, send) => send(),
): Promise<HitReply | Unanswered> {
  const { object, set, cost } = check;
  try {
    const { policies } = isolate.setAt(set);
    const answer = await admitted(check, (admission) =>
      ask(env, isolate, object, (stub) => stub.hitUndoable(policies, cost, admission)),
    );
    if (typeof answer !== "string") return new Unanswered("failed", answer.message);
    const parts = answer.split(" ");
    const id = isAllowed(answer) ? (parts[numbersOfDecision] ?? "") : "";
    return { check, numbers: parts.slice(0, numbersOfDecision).join(" "), id };
  } catch (error) {
    if (error instanceof TooManyNewKeys) return { check: error.check, numbers: error.numbers, id: "" };
    if (error instanceof Unanswered) return error;
    throw error;
  }
}

/**
 * Undoes the hits of a denied request. A hit without a reply may be charged; as one whose undo is never received, it ends as
 * any other.
 */
export async function undoHits(
  env: TollgateEnv,
  isolate: Isolate,
  replies: readonly HitReply[],
): Promise<void> {
  const all: Promise<void>[] = [];
  const undo = ({ check: { object, set, cost }, id }: HitReply) =>
    undoHit(
      () => ask(env, isolate, object, (stub) => stub.undo(isolate.setAt(set).policies, cost, id)),
      (work) => all.push(work),
    );
  await Promise.all(replies.filter(({ id }) => id !== "").map(undo));
  await Promise.all(all);
}
