import { fromJson, type JsonDecision } from "../../http/json-decision.ts";
import type { AskIssuer, Background } from "../../lease/leases.ts";
import type { Decision } from "../../types.ts";
import { isAllowed, type Numbers, named } from "../../wasm/decision-numbers.ts";
import type { Counted, Operation } from "../../wasm/operations.ts";
import type { TollgateEnv } from "../env.ts";
import type { Isolate, Item } from "../gateway/isolate.ts";
import { report, type Via } from "../log.ts";
import type { Result as Outcome } from "../watch/report.ts";
import { collectorOf } from "../watch.ts";
import { ask, askInJson, Unanswered } from "./ask.ts";
import type { Answer, ErrorInfo } from "./decision.ts";

/** An operation on an object for a caller of the API or of RPC. */
interface ObjectCall {
  readonly env: TollgateEnv;
  readonly isolate: Isolate;
  readonly via: Via;
  readonly operation: Operation;
  readonly item: Item;
  readonly background: Background;
}

/** The error of an operation that the object rejected, where leases expect a decision. */
class Rejected extends Error {
  readonly info: ErrorInfo;

  constructor(info: ErrorInfo) {
    super(info.message);
    this.info = info;
  }
}

/** Calls an object, and logs a denial or a failure. Throws `Unanswered`. */
export function callObject(objectCall: ObjectCall): Promise<Numbers | ErrorInfo> {
  const { operation, item } = objectCall;
  const { names } = item;
  // A peek decides nothing, so it is not logged.
  const decided = (answer: Numbers | ErrorInfo) => {
    if (operation !== "hit" || typeof answer !== "string") return undefined;
    return isAllowed(answer) ? "allowed" : named(answer, names);
  };
  return reported(objectCall, answered(objectCall), decided);
}

/** Returns the result of an operation, by the object or, for a hit, from a lease. */
async function answered({
  env,
  isolate,
  operation,
  item,
  background,
}: ObjectCall): Promise<Numbers | ErrorInfo> {
  const { object, policies, names, amount, policy, countsDenied } = item;
  const { hasCredit } = isolate;
  // Operations that have more than an amount are asked in JSON.
  const count = (operation: Operation, amount: number) =>
    ask(env, isolate, object, (stub) =>
      stub.count(operation as Counted, policies, amount, policy, hasCredit),
    );
  if (operation !== "hit" || !isolate.hasLeases || countsDenied) return count(operation, amount);
  const issuer: AskIssuer = async (cost, report) => {
    const answer =
      report === undefined
        ? await count("hit", cost)
        : await ask(env, isolate, object, (stub) => stub.lease(policies, cost, report, hasCredit));
    if (typeof answer !== "string") throw new Rejected(answer);
    return answer;
  };
  try {
    // Those of rules begin with a number, and a policy may have any name.
    const key = `${JSON.stringify(names)} ${object}`;
    return await isolate.leases.hit(key, amount, issuer, background);
  } catch (error) {
    if (error instanceof Rejected) return error.info;
    throw error;
  }
}

/** Calls an object with an operation in JSON, and logs in the same way. */
export function callObjectInJson(objectCall: ObjectCall, question: string): Promise<Answer> {
  const { env, isolate, operation, item } = objectCall;
  // A report on a lease without a hit is denied nothing either.
  const asks = operation !== "peek" && !(operation === "lease" && item.amount === 0);
  const decided = (answer: Answer) => {
    const decision = asks ? decisionIn(answer) : undefined;
    return decision?.allowed ? "allowed" : decision && fromJson(decision);
  };
  return reported(objectCall, askInJson(env, isolate, item.object, question), decided);
}

function decisionIn(answer: Answer): JsonDecision | undefined {
  if ("reserved" in answer) return answer.reserved.decision;
  if ("undoable" in answer) return answer.undoable.decision;
  if ("leased" in answer) return answer.leased.decision;
  return "decision" in answer ? answer.decision : undefined;
}

/** Awaits a result, logs a denial or a failure, and counts it for the live page. `decided` returns the denial, if any. */
async function reported<Result>(
  { env, isolate, via, operation, item, background }: ObjectCall,
  pending: Promise<Result>,
  decided: (result: Result) => "allowed" | Decision | undefined,
): Promise<Result> {
  const { object, names, amount: cost } = item;
  const fields = () => ({ via, operation, key: isolate.logged(object, env), cost });
  const count = async (result: Outcome, decision?: Decision) => {
    if (!isolate.watches) return;
    const collector = isolate.collector ?? (await collectorOf(isolate));
    collector.ofCall(via, names, result, { env, background }, decision && { object, decision, cost });
  };
  try {
    const result = await pending;
    const decision = decided(result);
    if (decision === "allowed") await count("allowed");
    else if (decision !== undefined) {
      await count("denied", decision);
      const { violated: policies, reason } = decision;
      report(env, { event: "denied", ...fields(), policies, reason });
    }
    return result;
  } catch (error) {
    if (error instanceof Unanswered) {
      await count("errors");
      report(env, { event: "error", ...fields(), policies: names, ...error.logFields() });
    }
    throw error;
  }
}
