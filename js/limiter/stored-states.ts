import { checkVersion } from "../checks.ts";
import { invalidField, outOfMemory } from "../errors/error.ts";
import type { State, StoredState } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import { status, storedVersion } from "../wasm/generated.ts";
import type { SlotLimiter } from "../wasm/slot-limiter.ts";
import {
  copiedLists,
  copiedNumbers,
  ShapedStates,
  type ShapeNames,
  saved,
  stored,
  unreadable,
} from "../wasm/states.ts";

/**
 * Loads the states of one key, if it has any, into an empty limiter. Returns the policies that start unused, as bits by
 * their positions.
 */
export function loadStates(limiter: SlotLimiter, states: ShapedStates | undefined, now: number): number {
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

/** Returns saved states as they are stored; `null` if there are none. */
export const stateOf = (numbers: readonly number[], names: ShapeNames): State | null =>
  numbers.length === 0
    ? null
    : { version: storedVersion, states: saved(numbers).map((state) => stored(state, names)) };

/** Copies a stored state, each part read once, and checks the copy. */
export function readState(state: State, names: ShapeNames): ShapedStates {
  const wrong = (field: string, found: unknown) =>
    invalidField("invalid_state", field, found, "a state that step returned");
  if (typeof state !== "object") throw wrong("state", state);
  const { version, states } = state;
  if (!Number.isSafeInteger(version)) throw unreadable("it has no version");
  checkVersion(version);
  if (!Array.isArray(states)) throw wrong("state.states", states);
  const shaped = new ShapedStates(names);
  for (const each of elements(states)) {
    const { name, algorithm, scale, state, open } = (each ?? {}) as Partial<StoredState>;
    if (typeof name !== "string" || typeof algorithm !== "string" || !Number.isSafeInteger(scale))
      throw wrong("state.states", states);
    shaped.addStored({
      name,
      algorithm,
      scale: scale as number,
      state: copiedNumbers(state),
      open: copiedLists(open ?? []),
    });
  }
  return shaped;
}
