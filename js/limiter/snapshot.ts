import { checkKey, checkVersion } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import { isInteger } from "../policy/durations.ts";
import type { Key, Policy, Snapshot } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import { earlierUnplacedText, reservationNumbersText } from "../wasm/generated.ts";
import { copiedLists, unreadable } from "../wasm/states.ts";
import { keyFrom } from "./stored-key.ts";

/** A snapshot after its outer form was checked, each part read once. Its states are not checked yet. */
export interface ReadSnapshot {
  readonly policies: readonly Policy[];
  readonly keys: readonly (readonly [Key, unknown])[];
  /** The rows of states under other scales, by the position of their key. */
  readonly earlier: ReadonlyMap<number, readonly (readonly number[])[]>;
  /** The rows of open reservations, by the position of their key. */
  readonly reservations: ReadonlyMap<number, readonly (readonly number[])[]>;
}

const expected = "a snapshot that snapshot() returned";

/** Reads and checks the outer form of a snapshot. */
export function readSnapshot(snapshot: Snapshot): ReadSnapshot {
  const wrong = (field: string, found: unknown) => invalidField("invalid_state", field, found, expected);
  if (typeof snapshot === "string")
    throw invalidField("invalid_state", "snapshot", snapshot, `${expected}; read the text with JSON.parse`);
  if (typeof snapshot !== "object" || snapshot === null) throw wrong("snapshot", snapshot);
  const { version, policies, keys, earlier, reservations } = snapshot;
  if (!Number.isSafeInteger(version)) throw wrong("snapshot.version", version);
  checkVersion(version);
  if (!Array.isArray(policies)) throw wrong("snapshot.policies", policies);
  if (!Array.isArray(keys)) throw wrong("snapshot.keys", keys);
  const read = elements(keys).map((entry) => {
    const pair = Array.isArray(entry) ? elements(entry) : [];
    if (pair.length !== 2) throw wrong("snapshot.keys", entry);
    const [stored, states] = pair as [never, unknown];
    const key = keyFrom(stored);
    checkKey(key);
    return [key, states] as const;
  });
  return {
    policies,
    keys: read,
    earlier: rowsByKey(earlier, read.length, earlierUnplacedText),
    reservations: rowsByKey(reservations, read.length, reservationNumbersText),
  };
}

/** Groups rows by the position of their key, which is their first number. */
function rowsByKey(rows: unknown, keys: number, problem: string): Map<number, number[][]> {
  const byKey = new Map<number, number[][]>();
  for (const [key = -1, ...row] of copiedLists(rows ?? [])) {
    if (!isInteger(key, 0, keys - 1)) throw unreadable(problem);
    byKey.set(key, [...(byKey.get(key) ?? []), row]);
  }
  return byKey;
}
