import { fieldError, fill, invalidField, inWords, worded } from "./errors/error.ts";
import type { Key } from "./types.ts";
import { optionText, storedVersion, unsupportedVersionText } from "./wasm/generated.ts";

/** Checks that a key has a type that a Map compares by value and a snapshot can contain. */
export function checkKey(key: unknown): asserts key is Key {
  if (typeof key === "string" || typeof key === "bigint" || Number.isFinite(key)) return;
  const hint = typeof key === "object" && key !== null ? "; join its parts into one string" : "";
  throw fieldError("invalid_key", "key", inWords(key), `a string, finite number or bigint${hint}`);
}

/** Checks that options are an object. */
export function checkIsObject(options: unknown): asserts options is object {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw invalidField("invalid_option", "options", options, "an object");
}

/** Checks the names of options, so that a misspelt option is not silently ignored. */
export function checkNames(options: unknown, known: readonly string[]): void {
  checkIsObject(options);
  for (const name of Object.keys(options)) {
    if (!known.includes(name))
      throw invalidField("invalid_option", "options", name, fill(optionText, { known: known.join(", ") }));
  }
}

/** Copies options, each of which is read once, and checks their names. */
export function copiedOptions<Given extends object>(options: Given, known: readonly string[]): Given {
  checkIsObject(options);
  const copy = { ...options };
  checkNames(copy, known);
  return copy;
}

/** Checks that the named options, if present, are functions. */
export function checkFunctions<Names extends string>(
  options: { readonly [Name in Names]?: unknown },
  names: readonly Names[],
): void {
  for (const name of names) {
    const given = options[name];
    if (given !== undefined && typeof given !== "function")
      throw invalidField("invalid_option", name, given, "a function");
  }
}

/** Checks the version of a snapshot or a stored state. */
export function checkVersion(version: number): void {
  if (version === storedVersion) return;
  throw worded("unsupported_version", unsupportedVersionText, { found: version, expected: storedVersion });
}
