import type { AskIssuer } from "../leases.ts";
import { isAllowed, type Numbers, named } from "../numbers.ts";
import { ask, Unanswered } from "./ask.ts";
import { expose, permit } from "./cors.ts";
import { denial, namesOf } from "./denial.ts";
import type { TollgateEnv } from "./env.ts";
import { forward, withOneValue } from "./forward.ts";
import { giveBack, type Held, holdAll, settleLater } from "./hold.ts";
import type { Ask, Isolate, Told } from "./isolate.ts";
import { log, report } from "./log.ts";
import { problem, unanswered } from "./problem.ts";

/** What is to become of a request: go on (with headers for the answer), or be answered with this. */
type Outcome = { readonly headers: Told["headers"] } | { readonly response: Response };

/** Limits a request by every rule that it falls under in some reading, and passes on what all of them allow. */
export function gateway(
  request: Request,
  url: URL,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  upstream: string,
): Response | Promise<Response> {
  const plan = isolate.plan(request, url.pathname);
  if (plan === undefined) return forward(request, url, env, upstream);
  if ("rejectedBy" in plan) return rejected(request, isolate, plan.rejectedBy);
  const enforced = plan.some(({ shadow }) => shadow)
    ? afterShadows(request, env, context, isolate, plan)
    : plan;
  if (enforced.length === 0) return forward(request, url, env, upstream);
  for (const ask of enforced) {
    const remembered = isolate.recall(ask);
    if (remembered !== undefined) return denied(request, env, isolate, ask, remembered, true);
  }
  return limited(request, url, env, context, isolate, enforced, upstream);
}

/** Asks for the rules that only report. Nothing of the answer hangs on them, so the request does not wait. */
function afterShadows(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  plan: readonly Ask[],
): readonly Ask[] {
  for (const asks of byRule(plan.filter(({ shadow }) => shadow)))
    context.waitUntil(decide(request, env, context, isolate, asks));
  return plan.filter(({ shadow }) => !shadow);
}

/** The questions of each rule, which follow each other. */
function byRule(asks: readonly Ask[]): readonly (readonly Ask[])[] {
  if (asks.length === 1) return [asks];
  const rules: Ask[][] = [];
  for (const ask of asks) {
    const last = rules.at(-1);
    if (last?.[0]?.rule === ask.rule) last.push(ask);
    else rules.push([ask]);
  }
  return rules;
}

/** Passes a request on if all rules allow it, asked one after the other. */
async function limited(
  request: Request,
  url: URL,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  asks: readonly Ask[],
  upstream: string,
): Promise<Response> {
  let headers: Told["headers"] = [];
  for (const own of byRule(asks)) {
    const outcome = await decide(request, env, context, isolate, own);
    if ("response" in outcome) return outcome.response;
    headers = headers.length === 0 ? outcome.headers : joined(headers, outcome.headers);
  }
  const counted = withOneValue(request, asks);
  return withHeaders(await forward(counted, url, env, upstream), headers);
}

/** Fields that are lists. Of every other field the first one stays. */
const lists = ["RateLimit-Policy", "RateLimit"];

/** The headers of two decisions in one answer. */
function joined(one: Told["headers"], other: Told["headers"]): Told["headers"] {
  const all = new Map(one);
  for (const [name, value] of other) {
    const known = all.get(name);
    if (known === undefined) all.set(name, value);
    else if (lists.includes(name)) all.set(name, `${known}, ${value}`);
  }
  return [...all];
}

/** Decides under a rule by asking the objects of its keys. */
function decide(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  asks: readonly Ask[],
): Promise<Outcome> {
  return asks.length === 1
    ? decideOne(request, env, context, isolate, asks[0] as Ask)
    : decideAll(request, env, context, isolate, asks);
}

/** Decides over several keys, all or nothing. */
async function decideAll(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  asks: readonly Ask[],
): Promise<Outcome> {
  const now = Date.now();
  const answers = await holdAll(env, isolate, asks);
  const held = answers.filter((answer): answer is Held => !(answer instanceof Unanswered));
  const failures = answers.flatMap((answer, at) =>
    answer instanceof Unanswered ? [failed(request, env, isolate, asks[at] as Ask, answer)] : [],
  );
  const denials = held.filter(({ numbers }) => !isAllowed(numbers));
  const refusal = failures.find((failure) => "response" in failure);
  if (denials.length === 0 && refusal === undefined) {
    settleLater(isolate, held);
    const told = held.map(({ ask, numbers }) => ({ headers: isolate.told(ask.set, numbers).headers }));
    return { headers: [...told, ...(failures as typeof told)].map(({ headers }) => headers).reduce(joined) };
  }
  context.waitUntil(giveBack(env, isolate, held));
  for (const { ask, numbers } of denials) if (!ask.shadow) isolate.remember(ask, numbers, now);
  const longest = denials.toSorted((one, other) => waitOf(other) - waitOf(one))[0];
  if (longest === undefined) return refusal as Outcome;
  const { ask, numbers } = longest;
  return { response: denied(request, env, isolate, ask, isolate.told(ask.set, numbers), false) };
}

const waitOf = ({ numbers }: Held) => named(numbers, []).retryAfter;

/** Decides under a rule with one key, from a lease or by asking the key's object. */
async function decideOne(
  request: Request,
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  ask: Ask,
): Promise<Outcome> {
  // Before the object is asked: a denial that is remembered must not outlast what the object meant.
  const now = Date.now();
  let numbers: Numbers;
  try {
    numbers = await asked(env, context, isolate, ask);
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    return failed(request, env, isolate, ask, error);
  }
  const told = isolate.told(ask.set, numbers);
  if (isAllowed(numbers)) return { headers: told.headers };
  if (!ask.shadow) isolate.remember(ask, numbers, now);
  return { response: denied(request, env, isolate, ask, told, false) };
}

/** Reports a denial, and answers it. */
function denied(
  request: Request,
  env: TollgateEnv,
  isolate: Isolate,
  ask: Ask,
  { violated, headers, problem }: Told,
  remembered: boolean,
): Response {
  report(env, { ...told(env, isolate, ask, "denied"), policies: violated, remembered });
  const response = denial(headers, problem);
  permit(response.headers, request, isolate.cors);
  return response;
}

/** The decision of a hit. A rule that only reports asks for each: it must not keep from others what it never uses. */
function asked(
  env: TollgateEnv,
  context: ExecutionContext,
  isolate: Isolate,
  own: Ask,
): Numbers | Promise<Numbers> {
  const [policies, , countsDenied] = isolate.sets[own.set] as Isolate["sets"][number];
  const issuer: AskIssuer = async (cost, report) => {
    const operation = report === undefined ? "hit" : "lease";
    const answer = await ask(env, isolate.timeout, own.object, operation, policies, cost, report, own.credit);
    if (typeof answer !== "string") throw new Unanswered("failed", answer.message);
    return answer;
  };
  if (!own.leases || own.shadow || countsDenied) return issuer(own.cost, undefined);
  return isolate.leases.hit(isolate.keyOf(own), own.cost, issuer, (work) => context.waitUntil(work));
}

/** The rule says what becomes of a request whose object did not answer; the answer says that it was so. */
function failed(request: Request, env: TollgateEnv, isolate: Isolate, ask: Ask, error: Unanswered): Outcome {
  const answer = ask.allowOnError ? "allowed" : "denied";
  report(env, { ...told(env, isolate, ask, "error"), ...error.logFields(), answer });
  if (ask.shadow) return { headers: [] };
  const mark: [string, string] = ["Tollgate-Error", `${error.failure}; ${answer}`];
  if (ask.allowOnError) return { headers: [mark] };
  const response = unanswered();
  response.headers.set(...mark);
  expose(response.headers, ["Retry-After", "Tollgate-Error"]);
  permit(response.headers, request, isolate.cors);
  return { response };
}

/** Returns the fields of a log line about a denial or an error under a rule. */
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

/** Rejects a request that lacks a part of the rule's key. */
function rejected(request: Request, isolate: Isolate, rule: number): Response {
  log({ event: "rejected", via: "gateway", rule });
  const response = problem(403, "The request lacks what it is to be counted by", { rule });
  permit(response.headers, request, isolate.cors);
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
