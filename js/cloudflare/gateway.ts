import { ask, Unanswered } from "./ask.ts";
import { expose, permit } from "./cors.ts";
import { isAllowed, type Numbers } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { forward } from "./forward.ts";
import type { Ask, Isolate, Told } from "./isolate.ts";
import { report, say } from "./log.ts";
import { problem, unanswered } from "./problem.ts";

/** What is to become of a request: go on (with headers for the answer), or be answered with this. */
type Outcome = { readonly headers: Told["headers"] } | { readonly response: Response };

/** Limits a request by the first rule that matches it, and passes on what is allowed. */
export function gateway(
  request: Request,
  path: string,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  upstream: string,
): Response | Promise<Response> {
  const plan = isolate.plan(request, path);
  if (plan === undefined) return forward(request, env, upstream);
  if ("refusedBy" in plan) return refused(request, plan.refusedBy);
  if (plan.shadow) {
    // Nothing of the answer hangs on it, so the request does not wait for it.
    context.waitUntil(decide(request, env, isolate, plan));
    return forward(request, env, upstream);
  }
  const remembered = isolate.recall(plan, Date.now());
  if (remembered !== undefined) return denied(request, env, isolate, plan, remembered, true);
  return limited(request, env, isolate, plan, upstream);
}

/** Passes a request on if its object allows it. */
async function limited(
  request: Request,
  env: TollgateEnv,
  isolate: Isolate,
  plan: Ask,
  upstream: string,
): Promise<Response> {
  const outcome = await decide(request, env, isolate, plan);
  return "response" in outcome
    ? outcome.response
    : withHeaders(await forward(request, env, upstream), outcome.headers);
}

/** Decides under a rule by asking the key's object. */
async function decide(request: Request, env: TollgateEnv, isolate: Isolate, plan: Ask): Promise<Outcome> {
  // Before the object is asked: a denial that is remembered must not outlast what the object meant.
  const now = Date.now();
  let numbers: Numbers;
  try {
    numbers = await asked(env, isolate, plan);
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    return failed(request, env, isolate, plan, error);
  }
  const told = isolate.told(plan.set, numbers);
  if (isAllowed(numbers)) return { headers: told.headers };
  if (!plan.shadow) isolate.remember(plan, numbers, now);
  return { response: denied(request, env, isolate, plan, told, false) };
}

/** Reports a denial, and answers it. */
function denied(
  request: Request,
  env: TollgateEnv,
  isolate: Isolate,
  plan: Ask,
  { violated, headers, problem }: Told,
  remembered: boolean,
): Response {
  report(env, { ...told(env, isolate, plan, "denied"), policies: violated, remembered });
  return denial(request, headers, problem);
}

async function asked(env: TollgateEnv, isolate: Isolate, plan: Ask): Promise<Numbers> {
  const policies = isolate.sets[plan.set]?.[0] as string;
  const answer = await ask(env, isolate.timeout, plan.object, "hit", policies, plan.cost);
  if (typeof answer !== "string") throw new Unanswered("failed", answer.message);
  return answer;
}

/** The rule says what becomes of a request whose object did not answer; the answer says that it was so. */
function failed(request: Request, env: TollgateEnv, isolate: Isolate, plan: Ask, error: Unanswered): Outcome {
  const answer = plan.allowOnError ? "allowed" : "denied";
  report(env, { ...told(env, isolate, plan, "error"), ...error.inWords(), answer });
  if (plan.shadow) return { headers: [] };
  const mark: [string, string] = ["Tollgate-Error", `${error.trouble}; ${answer}`];
  if (plan.allowOnError) return { headers: [mark] };
  const response = unanswered();
  response.headers.set(...mark);
  expose(response.headers, ["Retry-After", "Tollgate-Error"]);
  permit(response.headers, request);
  return { response };
}

/** What a log says of any trouble under a rule. */
function told<Event>(
  env: TollgateEnv,
  isolate: Isolate,
  { rule, object, set, cost, shadow }: Ask,
  event: Event,
) {
  return {
    event,
    via: "gateway",
    rule,
    key: isolate.logged(object, env),
    policies: isolate.sets[set]?.[1] ?? [],
    cost,
    mode: shadow ? "shadow" : "enforce",
  } as const;
}

/** The headers of denials, by the names of what they tell. To set them anew is half the work of making them. */
const prepared = new Map<string, Headers>();

function prepare(names: string): Headers {
  const headers = new Headers({ "Content-Type": "application/problem+json", "Cache-Control": "no-store" });
  if (names !== "") headers.set("Access-Control-Expose-Headers", names);
  prepared.set(names, headers);
  return headers;
}

function denial(request: Request, told: Told["headers"], body: string): Response {
  const names = namesOf(told);
  const headers = prepared.get(names) ?? prepare(names);
  for (const [name, value] of told) headers.set(name, value);
  // The response has a copy of its own.
  const response = new Response(body, { status: 429, headers });
  permit(response.headers, request);
  return response;
}

const namesOf = (told: Told["headers"]): string => told.map(([name]) => name).join(", ");

function refused(request: Request, rule: number): Response {
  say({ event: "refused", via: "gateway", rule });
  const response = problem(403, "The request lacks what it is to be counted by", { rule });
  permit(response.headers, request);
  return response;
}

/** The upstream's answer with more headers. One that switches protocols stays as it is. */
function withHeaders(response: Response, added: Told["headers"]): Response {
  if (added.length === 0 || response.status === 101) return response;
  const answer = new Response(response.body, response);
  for (const [name, value] of added) answer.headers.set(name, value);
  answer.headers.append("Access-Control-Expose-Headers", namesOf(added));
  return answer;
}
