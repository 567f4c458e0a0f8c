import { checkFunctions, copiedOptions } from "../checks.ts";
import { integer, invalidField } from "../errors/error.ts";
import { type FallbackLimiter, type OnError, onErrorValues } from "../limiter/fallback.ts";
import { isInteger, milliseconds } from "../policy/durations.ts";
import { oneOf } from "../policy/policy.ts";
import { isWellFormed } from "../well-formed.ts";
import type { Store, StoreOptions } from "./types.ts";

/** Checked options. */
export interface ReadStoreOptions {
  /** A copy of the options, for another limiter. */
  readonly copy: StoreOptions;
  readonly store: Store;
  readonly clock: () => number;
  readonly prefix: string;
  readonly timeout: number;
  readonly maxTries: number;
  readonly onError: OnError;
  readonly fallback: FallbackLimiter | undefined;
}

const optionNames = ["store", "clock", "prefix", "timeout", "maxTries", "onError", "fallback"];

/** Ten processes that hit one key without a pause needed 57 at the most. With more, the time limit comes first. */
const defaultMaxTries = 100;

const maxTimeout = 30_000;

/** The longest prefix, in characters: a key has up to 1,024 bytes, and databases limit both together. */
const maxPrefix = 256;

/** Checks the options of a limiter. Each is read once. */
export function readStoreOptions(given: StoreOptions): ReadStoreOptions {
  const options = copiedOptions(given, optionNames);
  const invalid = (name: keyof StoreOptions, expected: string) =>
    invalidField("invalid_option", name, options[name], expected);
  checkFunctions(options, ["clock"]);
  const { store, clock = Date.now, prefix = "", maxTries = defaultMaxTries } = options;
  const { onError = "throw", fallback } = options;
  if (!isStore(store)) throw invalid("store", "an object with the methods get and swap");
  if (typeof prefix !== "string" || prefix.length > maxPrefix || !isWellFormed(prefix))
    throw invalid("prefix", `a string of at most ${maxPrefix} characters`);
  const timeout = milliseconds(options.timeout ?? 2_000);
  if (timeout === undefined || timeout > maxTimeout)
    throw invalid("timeout", `a duration of at most ${maxTimeout} ms`);
  if (!isInteger(maxTries, 1, 10_000)) throw invalid("maxTries", integer(1, 10_000));
  if (!onErrorValues.includes(onError)) throw invalid("onError", oneOf(onErrorValues));
  if (fallback !== undefined && !isFallback(fallback))
    throw invalid("fallback", "a limiter such as new RateLimiter(…)");
  return { copy: options, store, clock, prefix, timeout, maxTries, onError, fallback };
}

const isStore = (store: unknown): store is Store => {
  const { get, swap } = (store ?? {}) as Partial<Store>;
  return typeof get === "function" && typeof swap === "function";
};

const isFallback = (limiter: unknown): limiter is FallbackLimiter => {
  const { hit, peek } = (limiter ?? {}) as Partial<FallbackLimiter>;
  return typeof hit === "function" && typeof peek === "function";
};
