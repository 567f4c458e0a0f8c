import { forJson } from "../http/json-decision.ts";
import type { Decision } from "../types.ts";
import { isAllowed, named, violatedBy } from "../wasm/decision-numbers.ts";
import type { TollgateEnv } from "./env.ts";
import { type ClientResponse, Isolate, type LimitCheck } from "./gateway/isolate.ts";
import { report } from "./log.ts";
import { ask, Unanswered } from "./object/ask.ts";
import { unanswered } from "./problem.ts";

/** The limit of the playground's demo: ten hits at once, then one a second, for each address. */
const config = {
  // Rules need an upstream; the demo never forwards a request.
  upstream: "NONE",
  timeout: "10s",
  policies: { demo: { algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "1s" } },
  rules: [{ path: "/demo/hit", key: "ip", policies: "demo" }],
};
const policies = ["demo"];

let isolate: Isolate | undefined;

/** Handles the demo's route: limits it by address, and returns the decision with its headers. */
export async function demoHit(request: Request, env: TollgateEnv): Promise<Response> {
  isolate ??= new Isolate(JSON.stringify(config));
  const [check] = isolate.plan(request, "/demo/hit") as [LimitCheck];
  const { object, set, cost } = check;
  const fields = { via: "demo", key: isolate.logged(object, env), policies, cost } as const;
  try {
    const now = Date.now();
    const { policies: json } = isolate.setAt(set);
    const remembered = isolate.remembered(check);
    const numbers = remembered ?? (await ask(env, isolate, object, (stub) => stub.count("hit", json, cost)));
    if (typeof numbers !== "string") throw new Unanswered("failed", numbers.message);
    if (!isAllowed(numbers)) {
      if (remembered === undefined) isolate.remember(check, numbers, now);
      report(env, { event: "denied", ...fields, policies: violatedBy(numbers, policies) });
    }
    return respond(isolate.clientResponse(set, numbers), named(numbers, policies));
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    report(env, { event: "error", ...fields, ...error.logFields() });
    return unanswered();
  }
}

function respond({ headers, problem }: ClientResponse, decision: Decision): Response {
  const type = decision.allowed ? "application/json" : "application/problem+json";
  const body = { ...(problem && JSON.parse(problem)), decision: forJson(decision) };
  return new Response(JSON.stringify(body), {
    status: decision.allowed ? 200 : 429,
    headers: [["Content-Type", type], ["Cache-Control", "no-store"], ...headers],
  });
}
