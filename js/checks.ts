import { inWords, refused, TollgateError } from "./error.ts";
import { keyFrom } from "./keys.ts";
import type { Key, Options, Snapshot } from "./types.ts";

const optionNames = ["clock", "maxKeys", "onFull", "cleanPeriod", "keyOlderThan", "beforeClean"];

/** Passes what a Map can tell apart by its value, and a snapshot can hold. */
export function checkKey(key: unknown): asserts key is Key {
  if (typeof key === "string" || typeof key === "bigint" || Number.isFinite(key)) return;
  const hint = typeof key === "object" && key !== null ? "; join its parts into one string" : "";
  throw refused("invalid_key", "key", key, `a string, finite number or bigint${hint}`);
}

/** Passes an object that options can be read from. */
export function checkIsObject(options: unknown): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw refused("invalid_option", "options", options, "an object");
}

/** Passes options whose names are known and whose functions are functions; Rust sees to the rest. */
export function checkOptions(options: Options): void {
  checkIsObject(options);
  for (const name of Object.keys(options)) {
    if (!optionNames.includes(name)) {
      throw new TollgateError(
        "invalid_option",
        `${name}: no such option; known are ${optionNames.join(", ")}`,
      );
    }
  }
  for (const name of ["clock", "beforeClean"] as const) {
    const given = options[name];
    if (given !== undefined && typeof given !== "function")
      throw refused("invalid_option", name, given, "a function");
  }
}

/** Passes what has the shape of a snapshot; Rust sees to the states. */
export function checkSnapshot(snapshot: Snapshot): void {
  const accepts = "what snapshot() answered";
  if (typeof snapshot !== "object" || snapshot === null)
    throw refused("invalid_state", "snapshot", snapshot, accepts);
  const { version, policies, keys } = snapshot;
  if (version !== 1) {
    const found = inWords(version);
    throw new TollgateError(
      "unsupported_version",
      `the snapshot is of version ${found}, and only version 1 can be read`,
    );
  }
  if (!Array.isArray(policies)) throw refused("invalid_state", "snapshot.policies", policies, accepts);
  if (!Array.isArray(keys)) throw refused("invalid_state", "snapshot.keys", keys, accepts);
  for (const entry of keys) {
    if (!Array.isArray(entry) || entry.length !== 2)
      throw refused("invalid_state", "snapshot.keys", entry, accepts);
    checkKey(keyFrom(entry[0]));
  }
}
