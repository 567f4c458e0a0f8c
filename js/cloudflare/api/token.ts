import { isAllowed } from "../../wasm/decision-numbers.ts";
import type { TollgateEnv } from "../env.ts";
import { denial } from "../gateway/denial.ts";
import type { ClientResponse, Isolate, LimitCheck } from "../gateway/isolate.ts";
import { report } from "../log.ts";
import { ask } from "../object/ask.ts";
import { problem } from "../problem.ts";

/**
 * Returns the response to a request to the API without a valid token; `undefined` if the token is valid.
 *
 * Only wrong tokens are counted, by address: a client with a valid token is not locked out by guesses from its address.
 */
export async function closedTo(
  request: Request,
  env: TollgateEnv,
  isolate: Isolate,
): Promise<Response | undefined> {
  const secret = env.TOLLGATE_TOKEN;
  if (!secret)
    return problem(403, "No token is configured, so the API is closed", {
      detail: "Set one with: npx wrangler secret put TOLLGATE_TOKEN",
    });
  const [, token] = request.headers.get("Authorization")?.match(/^Bearer +([^\s]+)$/i) ?? [];
  if (token === undefined) return unauthorized("");
  if (await isToken(token, secret)) return undefined;
  const check = isolate.tokenCheck(request);
  const now = Date.now();
  const remembered = isolate.recall(check);
  if (remembered !== undefined) return tooMany(env, isolate, check, remembered);
  return (await counted(env, isolate, check, now)) ?? unauthorized(', error="invalid_token"');
}

const unauthorized = (error: string) =>
  problem(
    401,
    "A valid token is needed",
    { detail: "Send it as Authorization: Bearer <token>" },
    { "WWW-Authenticate": `Bearer realm="tollgate"${error}` },
  );

/** Counts a wrong token. Returns a response if there were too many; `undefined` otherwise, or if the object fails. */
async function counted(
  env: TollgateEnv,
  isolate: Isolate,
  check: LimitCheck,
  now: number,
): Promise<Response | undefined> {
  const { policies } = isolate.setAt(check.set);
  const hit = ask(env, isolate, check.object, (stub) => stub.count("hit", policies, check.cost));
  const answer = await hit.catch(() => {});
  if (typeof answer !== "string" || isAllowed(answer)) return undefined;
  isolate.remember(check, answer, now);
  return tooMany(env, isolate, check, isolate.clientResponse(check.set, answer));
}

function tooMany(
  env: TollgateEnv,
  isolate: Isolate,
  { object, cost }: LimitCheck,
  response: ClientResponse,
): Response {
  const key = isolate.logged(object, env);
  report(env, { event: "denied", via: "api", operation: "token", key, policies: response.violated, cost });
  return denial(response.headers, response.problem);
}

const encoder = new TextEncoder();
const digest = (text: string) => crypto.subtle.digest("SHA-256", encoder.encode(text));

/** Returns whether a token is the secret, in constant time: digests have one length. */
async function isToken(token: string, secret: string): Promise<boolean> {
  const [given, expected] = await Promise.all([digest(token), digest(secret)]);
  return crypto.subtle.timingSafeEqual(given, expected);
}
