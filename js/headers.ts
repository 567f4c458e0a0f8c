import { checkNames } from "./checks.ts";
import { text } from "./core/border.ts";
import { between } from "./core/text.ts";
import { rust } from "./core/wasm.ts";
import { refused } from "./error.ts";
import { readPolicies } from "./policies.ts";
import type { Decision, Policies } from "./types.ts";

/** Which headers to write. */
export interface HeaderOptions {
  /** Also the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`. */
  readonly legacy?: boolean | undefined;
}

function written(decision: Decision, policies: Policies, legacy: boolean): string[] {
  const { number, names } = readPolicies(policies);
  const { policy, violated: denied, allowed, limit, remaining, retryAfter, resetAfter } = decision ?? {};
  const position = names.indexOf(policy);
  const numbers = [limit, remaining, retryAfter === Number.POSITIVE_INFINITY ? 0 : retryAfter, resetAfter];
  const isDecision =
    typeof allowed === "boolean" &&
    position >= 0 &&
    Array.isArray(denied) &&
    [...denied].every((name) => names.includes(name)) &&
    numbers.every((one) => Number.isSafeInteger(one) && one >= 0);
  if (!isDecision)
    throw refused("invalid_decision", "decision", decision, "what hit or peek answered under these policies");
  let violated = 0;
  for (const name of denied) violated |= 1 << names.indexOf(name);
  rust().headers(
    number,
    Number(allowed),
    limit,
    remaining,
    retryAfter,
    resetAfter,
    position,
    violated,
    Number(legacy),
  );
  return text().split(between);
}

/**
 * The headers that tell a client where it stands: `RateLimit-Policy`, `RateLimit`, and `Retry-After` on a denial.
 *
 * @example
 * ```ts
 * import { RateLimiter, rateLimitHeaders } from "tollgate";
 *
 * const limiter = new RateLimiter({ algorithm: "fix_window", limit: 100, scale: "1m", name: "burst" });
 * const headers = rateLimitHeaders(limiter.hit("user:42"), limiter.policies);
 * console.log(headers["RateLimit-Policy"]); // => '"burst";q=100;w=60'
 * ```
 */
export function rateLimitHeaders(
  decision: Decision,
  policies: Policies,
  options: HeaderOptions = {},
): Record<string, string> {
  checkNames(options, ["legacy"]);
  const { legacy = false } = options;
  if (typeof legacy !== "boolean") throw refused("invalid_option", "legacy", legacy, "true or false");
  const headers: Record<string, string> = {};
  const list = written(decision, policies, legacy);
  for (let at = 0; at + 1 < list.length; at += 2) headers[list[at] as string] = list[at + 1] as string;
  return headers;
}

/**
 * The body of a 429, of type `application/problem+json`, by RFC 9457.
 *
 * @example
 * ```ts
 * import { problemBody, RateLimiter } from "tollgate";
 *
 * const limiter = new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "1m" });
 * limiter.hit("user:42");
 * const denied = limiter.hit("user:42");
 * console.log(JSON.parse(problemBody(denied, limiter.policies)).status); // => 429
 * ```
 */
export function problemBody(decision: Decision, policies: Policies): string {
  if (decision?.allowed === true)
    throw refused("invalid_decision", "decision", "allowed", "one that was denied");
  return written(decision, policies, false).at(-1) as string;
}
