import {
  __wbg_reset_state,
  headers as headerLines,
  initSync,
  problem_body,
  unfillable,
} from "../../build/headers/tollgate.js";
import wasm from "../../build/headers/tollgate_bg.wasm";
import { checkNames } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import { isInteger } from "../policy/durations.ts";
import { ReadPolicies, tooSlow } from "../policy/policies.ts";
import type { Decision, Policies } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import { status } from "../wasm/generated.ts";
import { allowed } from "../wasm/module.ts";
import { instanceOf, runOn, type WasmModule } from "../wasm/wasm-module.ts";

const headersModule: WasmModule<unknown> = {
  start: () => initSync({ module: allowed(wasm) }),
  reset: __wbg_reset_state,
  generation: 0,
};

/** Runs `work` on the wasm. It has no errors of its own, so whatever it throws ends the instance. */
function run<Result>(work: () => Result): Result {
  instanceOf(headersModule);
  return runOn(headersModule, work);
}

/** Which headers to write. */
export interface HeaderOptions {
  /** Also the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`. */
  readonly legacy?: boolean | undefined;
}

/** Policies in the form that the wasm takes. */
interface HeaderPolicies {
  readonly names: readonly string[];
  readonly numbers: Float64Array;
  /** The names, one on each line. */
  readonly lines: string;
  /** The units, one on each line, which is empty if a policy has none. */
  readonly units: string;
  /** By the position of the policy of the decision. */
  readonly templates: (Template | undefined)[];
}

const cache = /* @__PURE__ */ new WeakMap<ReadPolicies, HeaderPolicies>();

/** Reads and validates policies. */
function readPolicies(policies: Policies): HeaderPolicies {
  const read = ReadPolicies.of(policies);
  const cached = cache.get(read);
  if (cached !== undefined) return cached;
  const numbers = new Float64Array(read.numbers);
  const position = run(() => unfillable(numbers));
  if (position >= 0) throw tooSlow(read, status.at - position);
  const units = read.policies.map(({ unit }) => unit ?? "").join("\n");
  const made = { names: read.names, numbers, lines: read.names.join("\n"), units, templates: [] };
  cache.set(read, made);
  return made;
}

/** The headers of an allowed hit, with gaps for its two numbers. */
interface Template {
  readonly policy: string;
  readonly start: string;
  readonly middle: string;
  readonly end: string;
}

/** The largest integer of structured fields, and smaller numbers that mark the gaps of a template. */
const longest = 999_999_999_999_999;
const [probe, otherProbe] = [111_222_333_444, 555_666_777_888] as const;

/** Returns the limit of a policy, which is the second of its numbers. */
const limitOf = ({ numbers, names }: HeaderPolicies, position: number): number =>
  numbers[(numbers.length / names.length) * position + 1] as number;

/** Returns the headers of a decision's numbers: a name, then its value. */
const linesOf = (read: HeaderPolicies, numbers: Float64Array, legacy: boolean): string[] =>
  run(() => headerLines(numbers, read.numbers, read.lines, read.units, legacy)).split("\n");

/** Makes a template from headers that Rust writes with the marks: a call of the wasm takes longer than the hit. */
function templateOf(read: HeaderPolicies, position: number): Template {
  const numbers = new Float64Array([1, limitOf(read, position), probe, 0, otherProbe * 1_000, position, 0]);
  const [, policy = "", , field = ""] = linesOf(read, numbers, false);
  const first = field.lastIndexOf(String(probe));
  const second = field.lastIndexOf(String(otherProbe));
  const start = field.slice(0, first);
  const middle = field.slice(first + String(probe).length, second);
  const template = { policy, start, middle, end: field.slice(second + String(otherProbe).length) };
  read.templates[position] = template;
  return template;
}

/** Returns the headers of an allowed hit from a template. The window is left out if all of the limit remains. */
function filled({ policy, start, middle, end }: Template, remaining: number, moreAfter: number) {
  const window = moreAfter === 0 ? "" : `${middle}${Math.ceil(moreAfter / 1_000)}`;
  return { "RateLimit-Policy": policy, RateLimit: `${start}${remaining}${window}${end}` };
}

/** The numbers of a decision. */
interface DecisionNumbers {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfter: number;
  readonly moreAfter: number;
  /** The position of its policy. */
  readonly position: number;
  /** The number of its reason, if that changes a response. */
  readonly reason: number;
  /** A bit for each policy that denied, by its position. */
  readonly violated: number;
}

// A wait may be longer than the longest scale: two of them under a sliding_counter, more under debt.
const isWait = (wait: number) => Number.isInteger(wait) && wait >= 0;

/** Reads and checks a decision under policies of these names. Each of its fields is read once. */
function readDecision(decision: Decision, names: readonly string[]): DecisionNumbers {
  const {
    allowed,
    limit,
    remaining,
    retryAfter,
    moreAfter,
    policy,
    violated: denied,
    reason,
  } = decision ?? {};
  const position = names.indexOf(policy);
  const violated = Array.isArray(denied) ? bitsOf(denied, names) : undefined;
  const isDecision =
    typeof allowed === "boolean" &&
    position >= 0 &&
    violated !== undefined &&
    isInteger(limit) &&
    isInteger(remaining) &&
    (retryAfter === Number.POSITIVE_INFINITY || isWait(retryAfter)) &&
    isWait(moreAfter);
  if (!isDecision) {
    const expected = "a decision that hit or peek returned under these policies";
    throw invalidField("invalid_decision", "decision", decision, expected);
  }
  return {
    allowed,
    limit,
    remaining,
    retryAfter,
    moreAfter,
    position,
    violated,
    reason: allowed ? 0 : (reasons.get(reason) ?? 0),
  };
}

/** The numbers of the reasons that change a response, as `bindings/headers` reads them. */
const reasons: ReadonlyMap<unknown, number> = new Map([
  ["banned", 1],
  ["denied", 1],
  ["reserved", 2],
]);

/** Returns the positions of the names as bits; undefined if a name is unknown. */
function bitsOf(denied: readonly unknown[], names: readonly string[]): number | undefined {
  let bits = 0;
  for (const name of elements(denied)) {
    const position = names.indexOf(name as string);
    if (position < 0) return undefined;
    bits |= 1 << position;
  }
  return bits;
}

/**
 * Returns the headers for a client: `RateLimit-Policy`, `RateLimit`, and `Retry-After` on a denial.
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
  if (typeof legacy !== "boolean") throw invalidField("invalid_option", "legacy", legacy, "true or false");
  const read = readPolicies(policies);
  const { allowed, limit, remaining, retryAfter, moreAfter, position, reason } = readDecision(
    decision,
    read.names,
  );
  // Under an exception the limit may be another one.
  const isUsual = limit === limitOf(read, position) && remaining <= longest && moreAfter <= longest;
  if (allowed && !legacy && isUsual)
    return filled(read.templates[position] ?? templateOf(read, position), remaining, moreAfter);
  const last = [position, reason];
  const numbers = new Float64Array([Number(allowed), limit, remaining, retryAfter, moreAfter, ...last]);
  const lines = linesOf(read, numbers, legacy);
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
  const { allowed: isAllowed, violated, reason } = readDecision(decision, read.names);
  if (isAllowed) throw invalidField("invalid_decision", "decision", "allowed", "a decision that was denied");
  return run(() => problem_body(violated, reason, read.lines));
}
