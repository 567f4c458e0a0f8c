import { ask, askInJson, Unanswered } from "./ask.ts";
import { type Answer, isAllowed, type Mistake, type Numbers, violatedBy } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import type { Isolate, Item } from "./isolate.ts";
import { report, type Via } from "./log.ts";
import type { Operation } from "./object.ts";

/** How something is asked for a caller of the API or of RPC. */
interface Inquiry {
  readonly env: TollgateEnv;
  readonly isolate: Isolate;
  readonly via: Via;
  readonly operation: Operation;
  readonly item: Item;
}

/** Asks an object, and reports what was denied or not answered. Throws `Unanswered`. */
export function inquire(inquiry: Inquiry): Promise<Numbers | Mistake> {
  const { env, isolate, operation, item } = inquiry;
  const { object, policies, names, amount, of } = item;
  // Who peeks is not denied anything.
  const denied = (answer: Numbers | Mistake) =>
    operation === "hit" && typeof answer === "string" && !isAllowed(answer)
      ? violatedBy(answer, names)
      : undefined;
  return reported(inquiry, ask(env, isolate.timeout, object, operation, policies, amount, of), denied);
}

/** Asks an object what is more than an amount, and reports in the same way. */
export function inquireInJson(inquiry: Inquiry, question: string): Promise<Answer> {
  const { env, isolate, operation, item } = inquiry;
  const denied = (answer: Answer) => {
    const { decision } = "reserved" in answer ? answer.reserved : (answer as { decision?: never });
    return operation === "peek" || decision === undefined || decision.allowed ? undefined : decision.violated;
  };
  return reported(inquiry, askInJson(env, isolate.timeout, item.object, question), denied);
}

async function reported<Answered>(
  { env, isolate, via, operation, item }: Inquiry,
  asked: Promise<Answered>,
  denied: (answer: Answered) => readonly string[] | undefined,
): Promise<Answered> {
  const { object, names, amount: cost } = item;
  const told = () => ({ via, operation, key: isolate.logged(object, env), cost });
  try {
    const answer = await asked;
    const policies = denied(answer);
    if (policies !== undefined) report(env, { event: "denied", ...told(), policies });
    return answer;
  } catch (error) {
    if (error instanceof Unanswered)
      report(env, { event: "error", ...told(), policies: names, ...error.inWords() });
    throw error;
  }
}
