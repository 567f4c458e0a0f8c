import type { AskIssuer } from "../../lease/leases.ts";
import { isAllowed, type Numbers, named, reasonIn } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import { log, report } from "../log.ts";
import { ask, Unanswered } from "../object/ask.ts";
import { type HitReply, hitObjects, undoHits } from "../object/undo.ts";
import { problem, unanswered } from "../problem.ts";
import type { Result } from "../watch/report.ts";
import { expose, permit } from "./cors.ts";
import { denial, namesOf } from "./denial.ts";
import { forward, withOneValue } from "./forward.ts";
import type { ClientResponse, Isolate, LimitCheck, Rejection } from "./isolate.ts";
import { askAdmitted } from "./new-keys.ts";
import { TooManyNewKeys } from "./too-many-new-keys.ts";

/** The outcome of a decision: the request passes, with headers for its response, or gets this response. */
type Outcome = { readonly headers: ClientResponse["headers"] } | { readonly response: Response };

/** A request on its way through the gateway. */
export interface GatewayCall {
  readonly request: Request;
  readonly url: URL;
  readonly env: TollgateEnv;
  readonly context: ExecutionContext;
  readonly isolate: Isolate;
  readonly upstream: string;
}

/** Limits a request by every rule that applies to it in some reading, and forwards it if all of them allow it. */
export function gateway(call: GatewayCall): Response | Promise<Response> {
  const { request, url, isolate } = call;
  const plan = isolate.plan(request, url.pathname);
  if (plan === undefined) return forwarded(call, request);
  if ("rejectedBy" in plan) return rejected(call, plan);
  const enforced = plan.some(({ shadow }) => shadow) ? withoutShadows(call, plan) : plan;
  if (enforced.length === 0) return forwarded(call, request);
  for (const check of enforced) {
    const remembered = isolate.remembered(check);
    if (remembered !== undefined) return denied(call, check, remembered, true);
  }
  return limited(call, enforced);
}

const forwarded = ({ url, env, upstream, isolate }: GatewayCall, request: Request) =>
  forward(request, url, env, upstream, isolate.forwardsRewrites);

/** Starts the checks of shadow rules, which the request does not wait for. Returns the others. */
function withoutShadows(call: GatewayCall, plan: readonly LimitCheck[]): readonly LimitCheck[] {
  for (const checks of byRule(plan.filter(({ shadow }) => shadow)))
    call.context.waitUntil(decide(call, checks));
  return plan.filter(({ shadow }) => !shadow);
}

/** Groups the checks by rule. Those of one rule follow each other. */
function byRule(checks: readonly LimitCheck[]): readonly (readonly LimitCheck[])[] {
  if (checks.length === 1) return [checks];
  const rules: LimitCheck[][] = [];
  for (const check of checks) {
    const last = rules.at(-1);
    if (last?.[0]?.rule === check.rule) last.push(check);
    else rules.push([check]);
  }
  return rules;
}

/** Decides by one rule after the other, and forwards the request if all allow it. */
async function limited(call: GatewayCall, checks: readonly LimitCheck[]): Promise<Response> {
  let headers: ClientResponse["headers"] = [];
  for (const own of byRule(checks)) {
    const outcome = await decide(call, own);
    if ("response" in outcome) return outcome.response;
    headers = headers.length === 0 ? outcome.headers : joined(headers, outcome.headers);
  }
  return withHeaders(await forwarded(call, withOneValue(call.request, checks)), headers);
}

/** Fields that are lists, and so are joined. Of every other field the first value stays. */
const lists = ["RateLimit-Policy", "RateLimit"];

/** Joins the headers of two decisions for one response. */
function joined(one: ClientResponse["headers"], other: ClientResponse["headers"]): ClientResponse["headers"] {
  const all = new Map(one);
  for (const [name, value] of other) {
    const known = all.get(name);
    if (known === undefined) all.set(name, value);
    else if (lists.includes(name)) all.set(name, `${known}, ${value}`);
  }
  return [...all];
}

/** Decides under a rule, by the objects of its keys. */
function decide(call: GatewayCall, checks: readonly LimitCheck[]): Promise<Outcome> {
  return checks.length === 1 ? decideOne(call, checks[0] as LimitCheck) : decideAll(call, checks);
}

/** Decides over several keys: charges all of them or none. */
async function decideAll(call: GatewayCall, checks: readonly LimitCheck[]): Promise<Outcome> {
  const { env, context, isolate } = call;
  const now = Date.now();
  const results = await hitInTurn(call, checks, now);
  const replies = results.flatMap(([, result]) => (result instanceof Unanswered ? [] : [result]));
  const failures = results.flatMap(([check, result]) =>
    result instanceof Unanswered ? [failed(call, check, result)] : [],
  );
  const denials = replies.filter(({ numbers }) => !isAllowed(numbers));
  const failureDenial = failures.find((failure) => "response" in failure);
  if (denials.length === 0 && failureDenial === undefined) {
    for (const { check } of replies) count(call, check, "allowed");
    const allowed = replies.map(({ check, numbers }) => isolate.clientResponse(check.set, numbers));
    const passed = failures as Extract<Outcome, { headers: unknown }>[];
    return { headers: [...allowed, ...passed].map(({ headers }) => headers).reduce(joined) };
  }
  context.waitUntil(undoHits(env, isolate, replies));
  for (const { check, numbers } of denials) if (!check.shadow) isolate.remember(check, numbers, now);
  const longest = denials.toSorted((one, other) => waitOf(other) - waitOf(one))[0];
  if (longest === undefined) return failureDenial as Outcome;
  const { check, numbers } = longest;
  return { response: denied(call, check, numbers, false) };
}

/** A check, and the reply of its object. */
type Hit = readonly [check: LimitCheck, result: HitReply | Unanswered];

/** Hits the objects of all keys at once; if one of them denied lately, first that one, and the others only if it allows. */
async function hitInTurn(
  call: GatewayCall,
  checks: readonly LimitCheck[],
  now: number,
): Promise<readonly Hit[]> {
  const { isolate } = call;
  const { deniedLately } = isolate;
  const hit = async (checks: readonly LimitCheck[]): Promise<Hit[]> => {
    const results = await hitObjects(call.env, isolate, checks, (check, send) =>
      askAdmitted(call, check, send),
    );
    return results.map((result, at) => {
      const check = checks[at] as LimitCheck;
      if (!(result instanceof Unanswered))
        deniedLately.note(isolate.keyOf(check), !isAllowed(result.numbers), now);
      return [check, result];
    });
  };
  const keys = checks.map((check) => isolate.keyOf(check));
  const worst = deniedLately.worst(keys, now);
  const first = checks[worst];
  if (first === undefined) return hit(checks);
  const [own] = (await hit([first])) as [Hit];
  const [, result] = own;
  const goesOn = result instanceof Unanswered ? first.allowOnError : isAllowed(result.numbers);
  if (!goesOn) return [own];
  const others = await hit(checks.toSpliced(worst, 1));
  // In the order of the rule, so that the headers do not depend on what was denied lately.
  return others.toSpliced(worst, 0, own);
}

const waitOf = ({ numbers }: HitReply) => named(numbers, []).retryAfter;

/** Decides under a rule with one key, from a lease or by the key's object. */
async function decideOne(call: GatewayCall, check: LimitCheck): Promise<Outcome> {
  const { isolate } = call;
  // Read before the object decides: a remembered denial must not last longer than the object's own.
  const now = Date.now();
  let numbers: Numbers;
  try {
    numbers = await checked(call, check);
  } catch (error) {
    if (error instanceof TooManyNewKeys) {
      return { response: denied(call, error.check, error.numbers, false) };
    }
    if (!(error instanceof Unanswered)) throw error;
    return failed(call, check, error);
  }
  if (isAllowed(numbers)) {
    count(call, check, "allowed");
    return { headers: isolate.clientResponse(check.set, numbers).headers };
  }
  // Where there are leases, they have remembered it for as long as it is certain.
  if (!check.shadow && !check.leases) isolate.remember(check, numbers, now);
  return { response: denied(call, check, numbers, false) };
}

/** Counts a decision for the live page, if there is one. The numbers are those of a denial. */
function count(
  { env, context, isolate: { collector } }: GatewayCall,
  check: LimitCheck,
  result: Result,
  numbers?: Numbers,
): void {
  collector?.ofRule(check, result, { env, background: (work) => context.waitUntil(work) }, numbers);
}

/** Logs a denial, and returns its response. */
function denied(call: GatewayCall, check: LimitCheck, numbers: Numbers, remembered: boolean): Response {
  const { request, env, isolate } = call;
  const { violated, headers, problem } = isolate.clientResponse(check.set, numbers);
  count(call, check, "denied", numbers);
  const reason = reasonIn(numbers);
  report(env, { ...logFields(call, check, "denied"), policies: violated, reason, remembered });
  const response = denial(headers, problem);
  permit(response.headers, request, isolate.cors);
  return response;
}

/**
 * Returns the decision of a check. A shadow rule has no lease, which would take from others an amount that the rule never
 * uses.
 */
function checked(call: GatewayCall, own: LimitCheck): Numbers | Promise<Numbers> {
  const { env, context, isolate } = call;
  const { policies, countsDenied } = isolate.setAt(own.set);
  const issuer: AskIssuer = async (cost, report) => {
    const answer = await askAdmitted(call, own, (admission) =>
      ask(env, isolate, own.object, (stub) =>
        report === undefined
          ? stub.count("hit", policies, cost, undefined, own.credit, admission)
          : stub.lease(policies, cost, report, own.credit, admission),
      ),
    );
    if (typeof answer !== "string") throw new Unanswered("failed", answer.message);
    return answer;
  };
  if (!own.leases || own.shadow || countsDenied) return issuer(own.cost, undefined);
  return isolate.leases.hit(isolate.keyOf(own), own.cost, issuer, (work) => context.waitUntil(work));
}

/** Returns the outcome of a check whose object did not respond, by the rule's `onError`. A header names the failure. */
function failed(call: GatewayCall, check: LimitCheck, error: Unanswered): Outcome {
  const { request, env, isolate } = call;
  const answer = check.allowOnError ? "allowed" : "denied";
  count(call, check, "errors");
  report(env, { ...logFields(call, check, "error"), ...error.logFields(), answer });
  if (check.shadow) return { headers: [] };
  const mark: [string, string] = ["Tollgate-Error", `${error.failure}; ${answer}`];
  if (check.allowOnError) return { headers: [mark] };
  const response = unanswered();
  response.headers.set(...mark);
  expose(response.headers, ["Retry-After", "Tollgate-Error"]);
  permit(response.headers, request, isolate.cors);
  return { response };
}

/** Returns the fields of a log line about a denial or an error under a rule. */
function logFields<Event>(
  { env, isolate }: GatewayCall,
  { rule, object, set, cost, shadow }: LimitCheck,
  event: Event,
) {
  return {
    event,
    via: "gateway",
    rule,
    key: isolate.logged(object, env),
    policies: isolate.setAt(set).names,
    cost,
    mode: shadow ? "shadow" : "enforce",
  } as const;
}

/** Rejects a request that lacks a part of the rule's key, that origins may read differently, or by its address. */
function rejected({ request, isolate }: GatewayCall, { rejectedBy: rule, reason }: Rejection): Response {
  log({ event: "rejected", via: "gateway", ...(reason === "address" ? {} : { rule }), reason });
  const [status, title] = rejections[reason];
  const response = problem(status, title, reason === "address" ? {} : { rule });
  permit(response.headers, request, isolate.cors);
  return response;
}

const rejections = {
  missing: [403, "The request lacks a header or cookie that is required"],
  ambiguous: [400, "A header or cookie of the request is ambiguous"],
  address: [403, "The address of the client is denied"],
} as const;

/** Returns the upstream's response with more headers. A response that switches protocols stays as it is. */
function withHeaders(response: Response, added: ClientResponse["headers"]): Response {
  const { status } = response;
  if (added.length === 0 || status === 101) return response;
  if (status < 200 || status > 599) {
    // The platform makes no response of such a status, but passes this one on.
    log({ event: "error", via: "gateway", failure: "status", status });
    return response;
  }
  const answer = new Response(response.body, response);
  for (const [name, value] of added) answer.headers.set(name, value);
  answer.headers.append("Access-Control-Expose-Headers", namesOf(added));
  return answer;
}
