import { refused, TollgateError } from "./error.ts";
import { keyFrom } from "./keys.ts";
import type { Key, Snapshot } from "./types.ts";

/** Passes what a Map can tell apart by its value, and a snapshot can hold. */
export function checkKey(key: unknown): asserts key is Key {
  if (typeof key === "string" || typeof key === "bigint" || Number.isFinite(key)) return;
  const hint = typeof key === "object" && key !== null ? "; join its parts into one string" : "";
  throw refused("invalid_key", "key", key, `a string, finite number or bigint${hint}`);
}

/** Passes an object that options can be read from. */
export function checkIsObject(options: unknown): asserts options is object {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw refused("invalid_option", "options", options, "an object");
}

/** Passes options whose names are known: one that is misspelt must not pass for one that was left out. */
export function checkNames(options: unknown, known: readonly string[]): void {
  checkIsObject(options);
  for (const name of Object.keys(options)) {
    if (!known.includes(name))
      throw new TollgateError("invalid_option", `${name}: no such option; known are ${known.join(", ")}`);
  }
}

/** Passes options whose functions, if they are there, are functions. */
export function checkFunctions<Names extends string>(
  options: { readonly [Name in Names]?: unknown },
  names: readonly Names[],
): void {
  for (const name of names) {
    const given = options[name];
    if (given !== undefined && typeof given !== "function")
      throw refused("invalid_option", name, given, "a function");
  }
}

/** Passes the version that this library writes. */
export function checkVersion(what: string, version: number): void {
  if (version === 2) return;
  const message = `the ${what} is of version ${version}, and only version 2 can be read`;
  throw new TollgateError("unsupported_version", message);
}

/** Passes what has the shape of a snapshot. */
export function checkSnapshot(snapshot: Snapshot): void {
  const accepts = "what snapshot() answered";
  if (typeof snapshot === "string")
    throw refused("invalid_state", "snapshot", snapshot, `${accepts}, which JSON.parse reads`);
  if (typeof snapshot !== "object" || snapshot === null)
    throw refused("invalid_state", "snapshot", snapshot, accepts);
  const { version, policies, keys } = snapshot;
  if (!Number.isSafeInteger(version)) throw refused("invalid_state", "snapshot.version", version, accepts);
  checkVersion("snapshot", version);
  if (!Array.isArray(policies)) throw refused("invalid_state", "snapshot.policies", policies, accepts);
  if (!Array.isArray(keys)) throw refused("invalid_state", "snapshot.keys", keys, accepts);
  for (const entry of keys) {
    if (!Array.isArray(entry) || entry.length !== 2)
      throw refused("invalid_state", "snapshot.keys", entry, accepts);
    checkKey(keyFrom(entry[0]));
  }
}
