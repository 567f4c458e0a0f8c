import { isAllowed, type Numbers } from "../../wasm/decision-numbers.ts";
import { type Admission, newMark } from "../object/admission.ts";
import { Unanswered } from "../object/ask.ts";
import type { ErrorInfo } from "../object/decision.ts";
import { type HitReply, hitUndoable, undoHits } from "../object/undo.ts";
import type { GatewayCall } from "./gateway.ts";
import type { LimitCheck } from "./isolate.ts";
import { TooManyNewKeys } from "./too-many-new-keys.ts";

/** Performs an operation of a check on its object; `undefined` without a limit on new keys. */
type Ask = (admission: Admission | undefined) => Promise<Numbers | ErrorInfo>;

/**
 * Performs an operation on a key under the rule's limit on new keys. The object of the client's address is called only if
 * the key's object has stored nothing: so a key that is in use costs no message more, and a denied new key no row.
 *
 * @throws {@link TooManyNewKeys}, and `Unanswered` if the object of the address fails and the rule has `onError: "deny"`.
 */
export async function askAdmitted(
  call: GatewayCall,
  check: LimitCheck,
  ask: Ask,
): Promise<Numbers | ErrorInfo> {
  const { newKeys, keptFor } = check;
  if (newKeys === undefined) return ask(undefined);
  const first = await ask({ keptFor, isAdmitted: false });
  if (first !== newMark) return first;
  const counted = await admit(call, check, newKeys);
  if (counted instanceof TooManyNewKeys) {
    // Of several requests that bring a key together, one may have been admitted meanwhile.
    const second = await ask({ keptFor, isAdmitted: false });
    if (second !== newMark) return second;
    throw counted;
  }
  const answer = await ask({ keptFor, isAdmitted: true });
  const isNew = typeof answer === "string" && answer.endsWith(newMark);
  // Another request was first with the key, and has counted it.
  if (counted !== undefined && !isNew) call.context.waitUntil(undoHits(call.env, call.isolate, [counted]));
  return isNew ? answer.slice(0, -newMark.length) : answer;
}

/** Counts a new key at the object of the client's address; undefined if the object failed and the rule allows that. */
async function admit(
  { request, env, isolate }: GatewayCall,
  check: LimitCheck,
  set: number,
): Promise<HitReply | TooManyNewKeys | undefined> {
  const object = isolate.newKeysObject(request);
  const own = { ...check, object, set, cost: 1, newKeys: undefined, leases: false, credit: false };
  const remembered = isolate.remembered(own);
  if (remembered !== undefined) return new TooManyNewKeys(own, remembered);
  const sentAt = Date.now();
  const counted = await hitUndoable(env, isolate, own);
  if (counted instanceof Unanswered) {
    if (check.allowOnError) return undefined;
    throw counted;
  }
  if (isAllowed(counted.numbers)) return counted;
  isolate.remember(own, counted.numbers, sentAt);
  return new TooManyNewKeys(own, counted.numbers);
}
