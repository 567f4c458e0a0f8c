import { checkFunctions, checkNames } from "./checks.ts";
import { refused } from "./error.ts";
import { isWhole, milliseconds, time, whole } from "./numbers.ts";
import type { Options } from "./types.ts";

const known = ["clock", "maxKeys", "onFull", "cleanPeriod", "keyOlderThan", "beforeClean"];

/** A JavaScript Map holds no more. */
const mostKeys = 16_000_000;

/** Options as Rust takes them: how many keys, whether a full limiter denies, how often it cleans, and after what age. */
export type OptionNumbers = readonly [
  maxKeys: number,
  denies: number,
  cleanPeriod: number,
  keyOlderThan: number,
];

/** What holds where nothing is said: no age is too old. */
export const defaults: OptionNumbers = [1_000_000, 0, 60_000, 0];

/** Reads a limiter's options. */
export function readOptions(options: Options): OptionNumbers {
  checkNames(options, known);
  checkFunctions(options, ["clock", "beforeClean"]);
  const wrong = (name: keyof Options, accepts: string) =>
    refused("invalid_option", name, options[name], accepts);
  const maxKeys = options.maxKeys ?? defaults[0];
  if (!isWhole(maxKeys, 1, mostKeys)) throw wrong("maxKeys", whole(1, mostKeys));
  const denies = ["evict", "deny"].indexOf(options.onFull ?? "evict");
  if (denies < 0) throw wrong("onFull", '"evict" or "deny"');
  const span = (name: "cleanPeriod" | "keyOlderThan", otherwise: number) => {
    const found = options[name] == null ? otherwise : milliseconds(options[name]);
    if (found === undefined) throw wrong(name, time);
    return found;
  };
  return [maxKeys, denies, span("cleanPeriod", defaults[2]), span("keyOlderThan", defaults[3])];
}
