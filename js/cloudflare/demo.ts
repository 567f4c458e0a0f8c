import { isAllowed, named, violatedBy } from "../numbers.ts";
import { ask, Unanswered } from "./ask.ts";
import { plain } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { type Ask, Isolate } from "./isolate.ts";
import { report } from "./log.ts";
import { unanswered } from "./problem.ts";

/** Ten at once, then one a second, for each address. */
const config = {
  // A rule needs one; nothing is ever passed on.
  upstream: "NONE",
  timeout: "10s",
  policies: { demo: { algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "1s" } },
  rules: [{ path: "/demo/hit", key: "ip", policies: "demo" }],
};
const policies = ["demo"];

let isolate: Isolate | undefined;

/** The open route: limited by IP, answers the decision with the headers a client reads. */
export async function demoHit(request: Request, env: TollgateEnv): Promise<Response> {
  isolate ??= new Isolate(config);
  const [{ object, set, cost }] = isolate.plan(request, "/demo/hit") as [Ask];
  const told = { via: "demo", key: isolate.logged(object, env), policies, cost } as const;
  try {
    const numbers = await ask(env, isolate.timeout, object, "hit", isolate.sets[set]?.[0] as string, cost);
    if (typeof numbers !== "string") throw new Unanswered("failed", numbers.message);
    if (!isAllowed(numbers))
      report(env, { event: "denied", ...told, policies: violatedBy(numbers, policies) });
    return answer(isolate.told(set, numbers), named(numbers, policies));
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    report(env, { event: "error", ...told, ...error.logFields() });
    return unanswered();
  }
}

function answer(
  { headers, problem }: ReturnType<Isolate["told"]>,
  decision: ReturnType<typeof named>,
): Response {
  const type = decision.allowed ? "application/json" : "application/problem+json";
  const body = { ...(problem && JSON.parse(problem)), decision: plain(decision) };
  return new Response(JSON.stringify(body), {
    status: decision.allowed ? 200 : 429,
    headers: [["Content-Type", type], ["Cache-Control", "no-store"], ...headers],
  });
}
