import { copiedOptions } from "../checks.ts";
import { schema } from "../core/generated.ts";
import { isInteger, milliseconds } from "../durations.ts";
import { integer, refused } from "../error.ts";
import { oneOf } from "../policy.ts";
import { isWellFormed } from "../well-formed.ts";
import { type Runner, runnerOf } from "./client.ts";
import type { FallbackLimiter, RedisOptions } from "./types.ts";

/** The options that were read. */
export interface ReadRedisOptions {
  readonly runner: Runner;
  readonly prefix: string;
  readonly name: string | undefined;
  readonly timeout: number;
  readonly onError: "throw" | "allow" | "deny";
  readonly fallback: FallbackLimiter | number | undefined;
  readonly maxKeys: number;
  readonly restore: boolean;
}

const known = ["client", "prefix", "name", "timeout", "onError", "fallback", "maxKeys", "restore"];

const onErrorWords = ["throw", "allow", "deny"] as const;

const defaultMaxKeys = 100_000;

/** The longest timeout: tokens of entries are remembered for twice as long. */
const mostTimeout = 30_000;

/** Reads a limiter's options. Each is read once. */
export function readRedisOptions(given: RedisOptions): ReadRedisOptions {
  const options = copiedOptions(given, known);
  const wrong = (name: keyof RedisOptions, expected: string) =>
    refused("invalid_option", name, options[name], expected);
  const { client, prefix = "tollgate:", name, onError = "throw", maxKeys = defaultMaxKeys } = options;
  const timeout = milliseconds(options.timeout ?? 250);
  if (timeout === undefined || timeout > mostTimeout)
    throw wrong("timeout", `a duration of at most ${mostTimeout} ms`);
  if (typeof prefix !== "string" || !isWellFormed(prefix)) throw wrong("prefix", "a string");
  if (name !== undefined && (typeof name !== "string" || !/^[\w.-]{1,64}$/.test(name)))
    throw wrong("name", "1 to 64 letters, digits or any of _ . -");
  if (!onErrorWords.includes(onError)) throw wrong("onError", oneOf(onErrorWords));
  if (!isInteger(maxKeys, 1, schema.maxKeys)) throw wrong("maxKeys", integer(1, schema.maxKeys));
  const { restore = true } = options;
  if (typeof restore !== "boolean") throw wrong("restore", "true or false");
  const fallback = readFallback(options.fallback);
  return { runner: runnerOf(client), prefix, name, timeout, onError, fallback, maxKeys, restore };
}

function readFallback(fallback: unknown): FallbackLimiter | number | undefined {
  if (fallback === undefined) return undefined;
  const { hit, peek, share } = (fallback ?? {}) as Partial<FallbackLimiter> & { share?: unknown };
  if (typeof hit === "function" && typeof peek === "function") return fallback as FallbackLimiter;
  if (typeof share === "number" && share > 0 && share <= 1) return share;
  const expected = "a limiter such as new RateLimiter(…), or { share } with a number above 0 and up to 1";
  throw refused("invalid_option", "fallback", share === undefined ? fallback : share, expected);
}
