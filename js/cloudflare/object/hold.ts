import { Unsettled } from "../../reservation/unsettled.ts";
import { isAllowed, type Numbers } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import type { Isolate, LimitCheck } from "../gateway/isolate.ts";
import { TooManyNewKeys } from "../gateway/too-many-new-keys.ts";
import type { Admission } from "./admission.ts";
import { ask, Unanswered } from "./ask.ts";
import type { ErrorInfo } from "./decision.ts";

/** An object's reply to `hold`: its decision, and the id of the reservation, which is empty if it was denied. */
export interface HoldReply {
  readonly check: LimitCheck;
  readonly numbers: Numbers;
  readonly id: string;
}

/** The reservations to settle with the next message to their objects. Its keys include the policies. */
const unsettled = new Unsettled();

const keyOf = (isolate: Isolate, { object, set }: LimitCheck) => `${isolate.setAt(set).policies} ${object}`;

/**
 * Reserves the costs of one decision over several keys at all its objects at once. The message also settles earlier
 * reservations there, so that an allowed request takes one message to each object.
 */
export function holdAll(
  env: TollgateEnv,
  isolate: Isolate,
  checks: readonly LimitCheck[],
  admitted: Admitted,
): Promise<readonly (HoldReply | Unanswered)[]> {
  return Promise.all(checks.map((check) => hold(env, isolate, check, admitted)));
}

/** Sends the message of a check under the rule's limit on new keys. */
export type Admitted = (
  check: LimitCheck,
  send: (admission?: Admission) => Promise<Numbers | ErrorInfo>,
) => Promise<Numbers | ErrorInfo>;

/** Reserves the cost of one check. */
export async function hold(
  env: TollgateEnv,
  isolate: Isolate,
  check: LimitCheck,
  admitted: Admitted = (_, send) => send(),
): Promise<HoldReply | Unanswered> {
  const { object, set, cost } = check;
  const before = unsettled.take(keyOf(isolate, check));
  try {
    const { policies } = isolate.setAt(set);
    const answer = await admitted(check, (admission) =>
      ask(env, isolate, object, (stub) => stub.hold(policies, cost, before, admission)),
    );
    if (typeof answer !== "string") return new Unanswered("failed", answer.message);
    if (!isAllowed(answer)) return { check, numbers: answer, id: "" };
    const end = answer.lastIndexOf(" ");
    return { check, numbers: answer.slice(0, end), id: answer.slice(end + 1) };
  } catch (error) {
    if (error instanceof TooManyNewKeys) return { check: error.check, numbers: error.numbers, id: "" };
    if (error instanceof Unanswered) return error;
    throw error;
  }
}

/** Settles the reservations of an allowed request, with the next message to their objects. */
export function settleLater(isolate: Isolate, all: readonly HoldReply[]): void {
  for (const { check, id } of all) unsettled.add(keyOf(isolate, check), id);
}

/** Cancels the reservations of a denied request. If a message is lost, the reservation's end charges it. */
export async function releaseAll(
  env: TollgateEnv,
  isolate: Isolate,
  all: readonly HoldReply[],
): Promise<void> {
  const release = ({ check: { object, set }, id }: HoldReply) =>
    ask(env, isolate, object, (stub) => stub.release(isolate.setAt(set).policies, id));
  await Promise.allSettled(all.filter(({ id }) => id !== "").map(release));
}
