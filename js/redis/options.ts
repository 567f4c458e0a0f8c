import { checkFunctions, copiedOptions } from "../checks.ts";
import { integer, invalidField } from "../errors/error.ts";
import type { OnDecision } from "../events/messages.ts";
import { type FallbackLimiter, type OnError, onErrorValues } from "../limiter/fallback.ts";
import { isInteger, milliseconds } from "../policy/durations.ts";
import { oneOf } from "../policy/policy.ts";
import { leaseTtlText, schema } from "../wasm/generated.ts";
import { isWellFormed } from "../well-formed.ts";
import { type Runner, runnerOf } from "./client.ts";
import { defaultPrefix } from "./names.ts";
import type { LeaseOptions, RedisOptions } from "./types.ts";

/** Checked options. */
export interface ReadRedisOptions {
  /** A copy of the options, for another limiter. */
  readonly copy: RedisOptions;
  readonly runner: Runner;
  readonly prefix: string;
  readonly name: string | undefined;
  readonly timeout: number;
  readonly onError: OnError;
  /** A limiter, or the share of each limit. */
  readonly fallback: FallbackLimiter | number | undefined;
  readonly maxKeys: number;
  readonly restore: boolean;
  /** The duration of leases in milliseconds; 0 if there are none. */
  readonly leaseTtl: number;
  /** How many denials of a key are kept; 0 if none are. */
  readonly history: number;
  readonly onDecision: OnDecision | undefined;
}

const optionNames = [
  "client",
  "prefix",
  "name",
  "timeout",
  "onError",
  "fallback",
  "maxKeys",
  "restore",
  "leases",
  "history",
  "onDecision",
];

/** The most denials of a key that are kept. */
const maxHistory = 1_000;

const defaultMaxKeys = 100_000;

/** The longest timeout. Values keep tokens for twice as long, so that a command which arrives twice is counted once. */
const maxTimeout = 30_000;

/** Checks the options of a limiter. Each is read once. */
export function readRedisOptions(given: RedisOptions): ReadRedisOptions {
  const options = copiedOptions(given, optionNames);
  const invalid = (name: keyof RedisOptions, expected: string) =>
    invalidField("invalid_option", name, options[name], expected);
  checkFunctions(options, ["onDecision"]);
  const { client, prefix = defaultPrefix, name, onError = "throw", maxKeys = defaultMaxKeys } = options;
  const timeout = milliseconds(options.timeout ?? 250);
  if (timeout === undefined || timeout > maxTimeout)
    throw invalid("timeout", `a duration of at most ${maxTimeout} ms`);
  if (typeof prefix !== "string" || !isWellFormed(prefix)) throw invalid("prefix", "a string");
  if (name !== undefined && (typeof name !== "string" || !/^[\w.-]{1,64}$/.test(name)))
    throw invalid("name", "1 to 64 letters, digits or any of _ . -");
  if (!onErrorValues.includes(onError)) throw invalid("onError", oneOf(onErrorValues));
  if (!isInteger(maxKeys, 1, schema.maxKeys)) throw invalid("maxKeys", integer(1, schema.maxKeys));
  const { restore = true, history = 0, onDecision } = options;
  if (!isInteger(history, 0, maxHistory)) throw invalid("history", integer(0, maxHistory));
  if (typeof restore !== "boolean") throw invalid("restore", "true or false");
  const fallback = readFallback(options.fallback);
  const leaseTtl = readLeaseTtl(options.leases);
  const runner = runnerOf(client);
  return {
    copy: options,
    runner,
    prefix,
    name,
    timeout,
    onError,
    fallback,
    maxKeys,
    restore,
    leaseTtl,
    history,
    onDecision,
  };
}

function readLeaseTtl(leases: unknown): number {
  if (leases === undefined || leases === false) return 0;
  if (leases === true) return schema.defaultLeaseTtl;
  if (typeof leases !== "object" || leases === null || Array.isArray(leases))
    throw invalidField("invalid_option", "leases", leases, "true, false or an object with ttl");
  const { ttl = schema.defaultLeaseTtl } = copiedOptions(leases as LeaseOptions, ["ttl"]);
  const time = milliseconds(ttl);
  if (time === undefined || time > schema.maxLeaseTtl)
    throw invalidField("invalid_option", "ttl", ttl, leaseTtlText);
  return time;
}

function readFallback(fallback: unknown): FallbackLimiter | number | undefined {
  if (fallback === undefined) return undefined;
  const { hit, peek, share } = (fallback ?? {}) as Partial<FallbackLimiter> & { share?: unknown };
  if (typeof hit === "function" && typeof peek === "function") return fallback as FallbackLimiter;
  if (typeof share === "number" && share > 0 && share <= 1) return share;
  const expected = "a limiter such as new RateLimiter(…), or { share } with a number above 0 and up to 1";
  throw invalidField("invalid_option", "fallback", share === undefined ? fallback : share, expected);
}
