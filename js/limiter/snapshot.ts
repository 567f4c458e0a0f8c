import { checkKey, checkVersion } from "../checks.ts";
import { invalidField } from "../errors/error.ts";
import { isInteger } from "../policy/durations.ts";
import type { Key, Policy, Snapshot } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import { reservationNumbersText, schema } from "../wasm/generated.ts";
import { copiedLists, unreadable } from "../wasm/states.ts";
import { keyFrom } from "./stored-key.ts";

/** A snapshot after its outer form was checked, each part read once. Its states are not checked yet. */
export interface ReadSnapshot {
  readonly policies: readonly Policy[];
  readonly keys: readonly (readonly [Key, unknown])[];
  /** The parts of open reservations, each after the position of its policy, by the position of their key. */
  readonly open: RowsByKey;
  /** The states of former shapes, by the position of their key. */
  readonly former: RowsByKey;
  /** The names of former shapes that are not names of the policies. */
  readonly names: readonly string[];
}

type RowsByKey = ReadonlyMap<number, readonly (readonly number[])[]>;

const expected = "a snapshot that snapshot() returned";

/** Reads and checks the outer form of a snapshot. */
export function readSnapshot(snapshot: Snapshot): ReadSnapshot {
  const wrong = (field: string, found: unknown) => invalidField("invalid_state", field, found, expected);
  if (typeof snapshot === "string")
    throw invalidField("invalid_state", "snapshot", snapshot, `${expected}; read the text with JSON.parse`);
  if (typeof snapshot !== "object" || snapshot === null) throw wrong("snapshot", snapshot);
  const { version, policies, keys, open, former, names = [] } = snapshot;
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
  return {
    policies,
    keys: read,
    open: rowsByKey(open, read.length, ({ length }) => length === 1 + schema.openNumbers),
    former: rowsByKey(former, read.length, ({ length }) => length >= 4),
    names: copied as string[],
  };
}

/** Groups rows by the position of their key, which is their first number. */
function rowsByKey(rows: unknown, keys: number, isRow: (row: number[]) => boolean): Map<number, number[][]> {
  const byKey = new Map<number, number[][]>();
  for (const [key = -1, ...row] of copiedLists(rows ?? [])) {
    if (!isInteger(key, 0, keys - 1) || !isRow(row)) throw unreadable(reservationNumbersText);
    const own = byKey.get(key);
    if (own === undefined) byKey.set(key, [row]);
    else own.push(row);
  }
  return byKey;
}
