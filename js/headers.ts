import { headers as headerLines, initSync, problem_body, unfillable } from "../build/headers/tollgate.js";
import wasm from "../build/headers/tollgate_bg.wasm";
import { checkNames } from "./checks.ts";
import { elements } from "./core/elements.ts";
import { status } from "./core/generated.ts";
import { allowed } from "./core/module.ts";
import { isInteger } from "./durations.ts";
import { refused } from "./error.ts";
import { ReadPolicies, tooSlow } from "./policies.ts";
import type { Decision, Policies } from "./types.ts";

/** Which headers to write. */
export interface HeaderOptions {
  /** Also the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`. */
  readonly legacy?: boolean | undefined;
}

/** Reads policies that a limiter would accept. */
function readPolicies(policies: Policies): ReadPolicies {
  const read = new ReadPolicies(policies);
  initSync({ module: allowed(wasm) });
  const position = unfillable(new Float64Array(read.numbers));
  if (position >= 0) throw tooSlow(read, status.at - position);
  return read;
}

/** Reads a decision that was made under policies of these names. Each of its fields is read once. */
function readDecision(decision: Decision, names: readonly string[]) {
  const { allowed, limit, remaining, retryAfter, resetAfter, policy, violated } = decision ?? {};
  const position = names.indexOf(policy);
  const denied = Array.isArray(violated)
    ? elements(violated).map((name) => names.indexOf(name as string))
    : [-1];
  // A wait may be longer than the longest scale: two of them under a sliding_counter, more under debt.
  const waits = [retryAfter === Number.POSITIVE_INFINITY ? 0 : retryAfter, resetAfter];
  const isDecision =
    typeof allowed === "boolean" &&
    [position, ...denied].every((position) => position >= 0) &&
    [limit, remaining].every((one) => isInteger(one)) &&
    waits.every((wait) => Number.isInteger(wait) && wait >= 0);
  if (!isDecision) {
    const expected = "a decision that hit or peek returned under these policies";
    throw refused("invalid_decision", "decision", decision, expected);
  }
  return {
    allowed,
    numbers: new Float64Array([Number(allowed), limit, remaining, retryAfter, resetAfter, position]),
    violated: denied.reduce((bits, position) => bits | (1 << position), 0),
  };
}

/**
 * Returns the headers that tell a client where it stands: `RateLimit-Policy`, `RateLimit`, and `Retry-After` on a denial.
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
  const { numbers } = readDecision(decision, read.names);
  const text = headerLines(numbers, new Float64Array(read.numbers), read.names.join("\n"), legacy);
  const lines = text.split("\n");
  const headers: Record<string, string> = {};
  for (let at = 0; at + 1 < lines.length; at += 2) headers[lines[at] as string] = lines[at + 1] as string;
  return headers;
}

/**
 * Returns the body of a 429, of type `application/problem+json`, by RFC 9457.
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
  const read = readPolicies(policies);
  const { allowed: isAllowed, violated } = readDecision(decision, read.names);
  if (isAllowed) throw refused("invalid_decision", "decision", "allowed", "a decision that was denied");
  return problem_body(violated, read.names.join("\n"));
}
