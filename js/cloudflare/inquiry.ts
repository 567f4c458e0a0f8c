import { ask, Unanswered } from "./ask.ts";
import { isAllowed, type Mistake, type Numbers, violatedBy } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import type { Isolate, Item } from "./isolate.ts";
import { report, type Via } from "./log.ts";
import type { Operation } from "./object.ts";

/** Asks an object for a caller of the API or of RPC, and reports what was denied or not answered. Throws `Unanswered`. */
export async function inquire(
  env: TollgateEnv,
  isolate: Isolate,
  via: Via,
  operation: Operation,
  item: Item,
): Promise<Numbers | Mistake> {
  const { object, policies, names, amount: cost, of } = item;
  const told = () => ({ via, operation, key: isolate.logged(object, env), cost });
  try {
    const answer = await ask(env, isolate.timeout, object, operation, policies, cost, of);
    // Who peeks is not denied anything.
    if (operation === "hit" && typeof answer === "string" && !isAllowed(answer))
      report(env, { event: "denied", ...told(), policies: violatedBy(answer, names) });
    return answer;
  } catch (error) {
    if (error instanceof Unanswered)
      report(env, { event: "error", ...told(), policies: names, ...error.inWords() });
    throw error;
  }
}
