import { checkVersion } from "../checks.ts";
import { invalidField, outOfMemory, type TollgateError, worded } from "../errors/error.ts";
import type { State } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import { manyRowsText, schema, status, storedVersion } from "../wasm/generated.ts";
import type { SlotLimiter } from "../wasm/slot-limiter.ts";
import { copiedNumbers, Rows, type ShapeNames, storedRows, unreadable } from "../wasm/states.ts";

/**
 * Loads the states of one key, if it has any, into an empty limiter. Returns the policies that start unused, as bits by
 * their positions.
 */
export function loadStates(limiter: SlotLimiter, states: Rows | undefined, now: number): number {
  const afresh = states === undefined ? 0 : limiter.load(-1, now, states.numbers, true);
  if (afresh <= status.at) throw states?.error(status.at - afresh);
  if (afresh < 0) throw outOfMemory();
  return afresh;
}

/** Saves the states of a slot. Returns when they end, and their numbers; 0 without numbers if there are none, or no slot. */
export function savedNumbers(
  limiter: SlotLimiter,
  slot: number,
  now: number,
): [expiresAt: number, numbers: readonly number[]] {
  if (slot < 0) return [0, []];
  const expiresAt = limiter.run(({ save }, index, generation) => save(index, generation, slot, now));
  if (expiresAt < 0) throw outOfMemory();
  // The list is empty if the states have ended.
  return [expiresAt, limiter.instance.list()];
}

/** Returns the error of an operation on one key for lack of memory, or of room for more rows. */
export const noRoom = (code: number): TollgateError =>
  code === status.manyRows ? worded("full", manyRowsText, { found: schema.maxRows }) : outOfMemory();

/** Returns the saved rows that have not ended as they are stored; `null` if there are none. */
export function stateOf(numbers: readonly number[], names: ShapeNames, now: number): State | null {
  const rows = storedRows(numbers, names, now);
  return rows.length === 0 ? null : { version: storedVersion, rows };
}

/** Copies a stored state, each part read once, and checks the copy. */
export function readState(state: State, names: ShapeNames): Rows {
  const wrong = (field: string, found: unknown) =>
    invalidField("invalid_state", field, found, "a state that step returned");
  if (typeof state !== "object") throw wrong("state", state);
  const { version, rows } = state;
  if (!Number.isSafeInteger(version)) throw unreadable("it has no version");
  checkVersion(version);
  if (!Array.isArray(rows)) throw wrong("state.rows", rows);
  const read = new Rows(names);
  for (const each of elements(rows)) {
    const [name, numbers] = Array.isArray(each) ? elements(each) : [];
    if (typeof name !== "string") throw wrong("state.rows", rows);
    read.add(name, copiedNumbers(numbers));
  }
  return read;
}
