import type { AskIssuer, Background } from "../leases.ts";
import { isAllowed, type Numbers, violatedBy } from "../numbers.ts";
import { ask, askInJson, Unanswered } from "./ask.ts";
import type { Answer, Mistake } from "./decision.ts";
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
  readonly background: Background;
}

/** An error in what was asked, where only decisions are expected. */
class Refused extends Error {
  readonly mistake: Mistake;

  constructor(mistake: Mistake) {
    super(mistake.message);
    this.mistake = mistake;
  }
}

/** Asks an object, and reports what was denied or not answered. Throws `Unanswered`. */
export function inquire(inquiry: Inquiry): Promise<Numbers | Mistake> {
  const { operation, item } = inquiry;
  const { names } = item;
  // Who peeks is not denied anything.
  const denied = (answer: Numbers | Mistake) =>
    operation === "hit" && typeof answer === "string" && !isAllowed(answer)
      ? violatedBy(answer, names)
      : undefined;
  return reported(inquiry, answered(inquiry), denied);
}

/** The answer of an object; or of a lease on it, to a hit. */
async function answered({ env, isolate, operation, item, background }: Inquiry): Promise<Numbers | Mistake> {
  const { object, policies, names, amount, of, countsDenied } = item;
  const asked = (operation: Operation | "lease", amount: number, of: string | undefined) =>
    ask(env, isolate.timeout, object, operation, policies, amount, of, isolate.hasCredit);
  if (operation !== "hit" || !isolate.hasLeases || countsDenied) return asked(operation, amount, of);
  const issuer: AskIssuer = async (cost, report) => {
    const answer = await asked(report === undefined ? "hit" : "lease", cost, report);
    if (typeof answer !== "string") throw new Refused(answer);
    return answer;
  };
  try {
    return await isolate.leases.hit(`${names.join()} ${object}`, amount, issuer, background);
  } catch (error) {
    if (error instanceof Refused) return error.mistake;
    throw error;
  }
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
      report(env, { event: "error", ...told(), policies: names, ...error.logFields() });
    throw error;
  }
}
