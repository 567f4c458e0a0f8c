import { checkKey, checkVersion } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import type { Key, Policy, Snapshot } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import { keyFrom } from "./stored-key.ts";

/** A snapshot after its outer form was checked, each part read once. Its rows are not checked yet. */
export interface ReadSnapshot {
  readonly policies: readonly Policy[];
  readonly keys: readonly (readonly [Key, unknown])[];
  /** The names of rows that are not names of the policies. */
  readonly names: readonly string[];
}

const expected = "a snapshot that snapshot() returned";

/** Reads and checks the outer form of a snapshot. */
export function readSnapshot(snapshot: Snapshot): ReadSnapshot {
  const wrong = (field: string, found: unknown) => invalidField("invalid_state", field, found, expected);
  if (typeof snapshot === "string")
    throw invalidField("invalid_state", "snapshot", snapshot, `${expected}; read the text with JSON.parse`);
  if (typeof snapshot !== "object" || snapshot === null) throw wrong("snapshot", snapshot);
  const { version, policies, keys, names = [] } = snapshot;
  if (!Number.isSafeInteger(version)) throw wrong("snapshot.version", version);
  checkVersion(version);
  if (!Array.isArray(policies)) throw wrong("snapshot.policies", policies);
  if (!Array.isArray(keys)) throw wrong("snapshot.keys", keys);
  if (!Array.isArray(names)) throw wrong("snapshot.names", names);
  const copied = elements(names);
  if (!copied.every((name) => typeof name === "string")) throw wrong("snapshot.names", names);
  const read = elements(keys).map((entry) => {
    const pair = Array.isArray(entry) ? elements(entry) : [];
    if (pair.length !== 2) throw wrong("snapshot.keys", entry);
    const [stored, states] = pair as [never, unknown];
    const key = keyFrom(stored);
    checkKey(key);
    return [key, states] as const;
  });
  return { policies, keys: read, names: copied as string[] };
}
