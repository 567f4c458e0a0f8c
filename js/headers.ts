import { checkNames } from "./checks.ts";
import { told } from "./core/headers.ts";
import { refused } from "./error.ts";
import { isWhole } from "./numbers.ts";
import { readPolicies } from "./policies.ts";
import type { Decision, Policies } from "./types.ts";

/** Which headers to write. */
export interface HeaderOptions {
  /** Also the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`. */
  readonly legacy?: boolean | undefined;
}

/** What Rust takes of a decision that was made under policies of these names. */
function readDecision(decision: Decision, names: readonly string[]) {
  const { allowed, limit, remaining, retryAfter, resetAfter, policy, violated } = decision ?? {};
  const position = names.indexOf(policy);
  const denied = Array.isArray(violated) ? violated.map((name) => names.indexOf(name)) : [-1];
  const numbers = [limit, remaining, retryAfter === Number.POSITIVE_INFINITY ? 0 : retryAfter, resetAfter];
  const isDecision =
    typeof allowed === "boolean" &&
    [position, ...denied].every((position) => position >= 0) &&
    numbers.every((one) => isWhole(one));
  if (!isDecision)
    throw refused("invalid_decision", "decision", decision, "what hit or peek answered under these policies");
  return {
    fields: [Number(allowed), limit, remaining, retryAfter, resetAfter, position] as const,
    violated: denied.reduce((bits, position) => bits | (1 << position), 0),
  };
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
  const read = readPolicies(policies);
  const { fields } = readDecision(decision, read.names);
  const lines = told(read, ({ headers }) => headers(read.names.length, ...fields, Number(legacy))).split(
    "\n",
  );
  const headers: Record<string, string> = {};
  for (let at = 1; at < lines.length; at += 2) headers[lines[at] as string] = lines[at + 1] as string;
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
  const read = readPolicies(policies);
  const { violated } = readDecision(decision, read.names);
  return told(read, ({ problem }) => problem(violated));
}
