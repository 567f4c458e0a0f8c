import { isAllowed } from "../numbers.ts";
import { ask } from "./ask.ts";
import { denial } from "./denial.ts";
import type { TollgateEnv } from "./env.ts";
import type { Ask, Isolate, Told } from "./isolate.ts";
import { report } from "./log.ts";
import { problem } from "./problem.ts";

/**
 * Answers a request to the API that does not show the token.
 *
 * Wrong tokens are counted by address. While an address is denied, no token of it is looked at: a guess that is
 * looked at is a guess that may be right.
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
  const guess = isolate.guess(request);
  const now = Date.now();
  const remembered = isolate.recall(guess);
  if (remembered !== undefined) return tooMany(env, isolate, guess, remembered);
  if (await isToken(token, secret)) return undefined;
  return (await counted(env, isolate, guess, now)) ?? unauthorized(', error="invalid_token"');
}

const unauthorized = (error: string) =>
  problem(
    401,
    "A valid token is needed",
    { detail: "Send it as Authorization: Bearer <token>" },
    { "WWW-Authenticate": `Bearer realm="tollgate"${error}` },
  );

/** Counts a wrong token, and answers it if there were too many. An object that does not answer denies nothing. */
async function counted(
  env: TollgateEnv,
  isolate: Isolate,
  guess: Ask,
  now: number,
): Promise<Response | undefined> {
  const policies = isolate.sets[guess.set]?.[0] as string;
  const answer = await ask(env, isolate.timeout, guess.object, "hit", policies, guess.cost).catch(() => {});
  if (typeof answer !== "string" || isAllowed(answer)) return undefined;
  isolate.remember(guess, answer, now);
  return tooMany(env, isolate, guess, isolate.told(guess.set, answer));
}

function tooMany(env: TollgateEnv, isolate: Isolate, { object, cost }: Ask, told: Told): Response {
  const key = isolate.logged(object, env);
  report(env, { event: "denied", via: "api", operation: "token", key, policies: told.violated, cost });
  return denial(told.headers, told.problem);
}

const encoder = new TextEncoder();
const digest = (text: string) => crypto.subtle.digest("SHA-256", encoder.encode(text));

/** Whether a token is the secret, in a time that tells nothing about either: digests are of one length. */
async function isToken(token: string, secret: string): Promise<boolean> {
  const [given, expected] = await Promise.all([digest(token), digest(secret)]);
  return crypto.subtle.timingSafeEqual(given, expected);
}
