import { checkFunctions, copiedOptions } from "../checks.ts";
import { integer, invalidField } from "../errors/error.ts";
import { durationExpected, isInteger, milliseconds } from "../policy/durations.ts";
import { oneOf } from "../policy/policy.ts";
import type { Options, ReserveOptions } from "../types.ts";
import { schema } from "../wasm/generated.ts";
import { ttlOf } from "./ttl.ts";

const known = ["clock", "maxKeys", "onFull", "cleanPeriod", "keyOlderThan", "beforeClean", "onDecision"];

/** The options of a limiter after validation, with numbers for Rust. */
export interface ReadOptions {
  readonly clock: () => number;
  readonly beforeClean: Options["beforeClean"];
  readonly onDecision: Options["onDecision"];
  readonly maxKeys: number;
  readonly denies: boolean;
  readonly cleanPeriod: number;
  /** 0 if there is no such age. */
  readonly keyOlderThan: number;
}

/** Reads and validates a limiter's options. Each is read once. */
export function readOptions(given: Options): ReadOptions {
  const options = copiedOptions(given, known);
  checkFunctions(options, ["clock", "beforeClean", "onDecision"]);
  const { clock = Date.now, beforeClean, onDecision } = options;
  const wrong = (name: keyof Options, expected: string) =>
    invalidField("invalid_option", name, options[name], expected);
  const maxKeys = options.maxKeys ?? schema.defaultMaxKeys;
  if (!isInteger(maxKeys, 1, schema.maxKeys)) throw wrong("maxKeys", integer(1, schema.maxKeys));
  const onFull = options.onFull ?? "evict";
  if (!schema.onFullWords.includes(onFull)) throw wrong("onFull", oneOf(schema.onFullWords));
  const duration = (name: "cleanPeriod" | "keyOlderThan", otherwise: number) => {
    const found = options[name] == null ? otherwise : milliseconds(options[name]);
    if (found === undefined) throw wrong(name, durationExpected);
    return found;
  };
  const cleanPeriod = duration("cleanPeriod", schema.defaultCleanPeriod);
  const keyOlderThan = duration("keyOlderThan", 0);
  const denies = onFull === "deny";
  return { clock, beforeClean, onDecision, maxKeys, denies, cleanPeriod, keyOlderThan };
}

/** Returns options as a caller gives them. */
export function givenOptions({
  clock,
  beforeClean,
  onDecision,
  maxKeys,
  denies,
  cleanPeriod,
  keyOlderThan: age,
}: ReadOptions): Options {
  const onFull = denies ? "deny" : "evict";
  const keyOlderThan = age || undefined;
  return { clock, beforeClean, onDecision, maxKeys, onFull, cleanPeriod, keyOlderThan };
}

/** Reads and validates the options of a reservation. Each is read once. */
export function readReserveOptions(given: ReserveOptions): {
  readonly ttl: number | undefined;
  readonly policies: ReserveOptions["policies"];
} {
  const { ttl, policies } = copiedOptions(given, ["ttl", "policies"]);
  return { ttl: ttl === undefined ? undefined : ttlOf(ttl), policies };
}
