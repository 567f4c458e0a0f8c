import { ask, Unanswered } from "./ask.ts";
import { expose, permit } from "./cors.ts";
import { isAllowed, type Numbers, violatedBy } from "./decision.ts";
import type { TollgateEnv } from "./env.ts";
import { forward } from "./forward.ts";
import type { Ask, Isolate } from "./isolate.ts";
import { report, say } from "./log.ts";
import { problem, unanswered } from "./problem.ts";

/** What is to become of a request: go on (with headers for the answer), or be answered with this. */
type Outcome = { readonly headers: [string, string][] } | { readonly response: Response };

/** Limits a request by the first rule that matches it, and passes on what is allowed. */
export async function gateway(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  upstream: string,
): Promise<Response> {
  const plan = isolate.plan(request, new URL(request.url).pathname);
  if (plan === undefined) return forward(request, env, upstream);
  if ("refusedBy" in plan) return refused(request, plan.refusedBy);
  if (plan.shadow) {
    // Nothing of the answer hangs on it, so the request does not wait for it.
    context.waitUntil(decide(request, env, isolate, plan));
    return forward(request, env, upstream);
  }
  const outcome = await decide(request, env, isolate, plan);
  return "response" in outcome
    ? outcome.response
    : withHeaders(await forward(request, env, upstream), outcome.headers);
}

/** Decides under a rule: from memory if the key was denied a moment ago, else by asking its object. */
export async function decide(
  request: Request,
  env: TollgateEnv,
  isolate: Isolate,
  plan: Ask,
): Promise<Outcome> {
  // Before the object is asked: a denial that is remembered must not outlast what the object meant.
  const now = Date.now();
  const remembered = plan.shadow ? undefined : isolate.recall(plan, now);
  let numbers = remembered;
  try {
    numbers ??= await asked(env, isolate, plan);
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    return failed(request, env, isolate, plan, error);
  }
  const { headers, problem } = isolate.told(plan.set, numbers);
  if (isAllowed(numbers)) return { headers };
  if (remembered === undefined && !plan.shadow) isolate.remember(plan, numbers, now);
  report(env, {
    ...told(env, isolate, plan, "denied"),
    policies: violatedBy(numbers, isolate.sets[plan.set]?.[1] ?? []),
    remembered: remembered !== undefined,
  });
  return plan.shadow ? { headers: [] } : { response: denial(request, headers, problem) };
}

async function asked(env: TollgateEnv, isolate: Isolate, plan: Ask): Promise<Numbers> {
  const policies = isolate.sets[plan.set]?.[0] as string;
  const answer = await ask(env, isolate.timeout, plan.object, "hit", policies, plan.cost);
  if ("code" in answer) throw new Unanswered("failed", answer.message);
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

function denial(request: Request, told: [string, string][], body: string): Response {
  const headers = new Headers({ "Content-Type": "application/problem+json", "Cache-Control": "no-store" });
  for (const [name, value] of told) headers.set(name, value);
  expose(
    headers,
    told.map(([name]) => name),
  );
  permit(headers, request);
  return new Response(body, { status: 429, headers });
}

function refused(request: Request, rule: number): Response {
  say({ event: "refused", via: "gateway", rule });
  const response = problem(403, "The request lacks what it is to be counted by", { rule });
  permit(response.headers, request);
  return response;
}

/** The upstream's answer with more headers. One that switches protocols stays as it is. */
function withHeaders(response: Response, added: [string, string][]): Response {
  if (added.length === 0 || response.status === 101) return response;
  const answer = new Response(response.body, response);
  for (const [name, value] of added) answer.headers.set(name, value);
  expose(
    answer.headers,
    added.map(([name]) => name),
  );
  return answer;
}
