import { inWords, TollgateError } from "../error.ts";
import { isWhole } from "../numbers.ts";
import type { Origin } from "../types.ts";

/** The error for a state that cannot be read: the only one there is, or that of one key. */
export const unreadable = (problem: string, whose = "") =>
  new TollgateError("invalid_state", `the stored state${whose} cannot be read: ${problem}`);

/** The error for numbers that Rust could not read as the state of a policy. */
export const unreadableAs = ({ name, algorithm }: Origin, whose?: string) =>
  unreadable(`the numbers of ${inWords(name)} are not those of a ${algorithm}`, whose);

/** Lists of numbers, from how they lie one after the other: for each, how many there are, then they. */
export function lists(flat: readonly number[]): number[][] {
  const states: number[][] = [];
  for (let at = 0; at < flat.length; ) {
    const end = at + 1 + (flat[at] as number);
    states.push(flat.slice(at + 1, end));
    at = end;
  }
  return states;
}

/**
 * One key's stored states as Rust takes them: for each of its own policies the scale by which the state of that name
 * was made, how many numbers it has, then they. What was made by another algorithm starts afresh, and is told.
 */
export function placed(
  states: unknown,
  origins: readonly Origin[],
  own: readonly Origin[],
  afresh: Set<string>,
  whose?: string,
): number[] {
  checkStates(states, origins.length, whose);
  const numbers: number[] = [];
  for (const { name, algorithm } of own) {
    // A single policy that was only renamed is still the same.
    const isRenamed = own.length === 1 && origins.length === 1;
    const at = isRenamed ? 0 : origins.findIndex((origin) => origin.name === name);
    const origin = origins[at];
    if (origin !== undefined && origin.algorithm !== algorithm) afresh.add(name);
    if (origin?.algorithm !== algorithm) {
      numbers.push(0, 0);
      continue;
    }
    if (!isWhole(origin.scale, 1)) throw unreadable(`the scale of ${inWords(name)} is out of range`, whose);
    const state = states[at] as number[];
    numbers.push(origin.scale, state.length);
    // One by one: a long log is more than a call takes arguments.
    for (const number of state) numbers.push(number);
  }
  return numbers;
}

/** Passes as many lists of whole numbers. */
function checkStates(states: unknown, count: number, whose?: string): asserts states is number[][] {
  if (!Array.isArray(states)) throw unreadable("its states are not a list", whose);
  if (states.length !== count) throw unreadable("the numbers of states and policies differ", whose);
  for (const state of states) {
    if (!Array.isArray(state)) throw unreadable("a state in it is not a list of numbers", whose);
    // Not by every, which would pass over what a list lacks.
    for (const number of state)
      if (!Number.isSafeInteger(number))
        throw unreadable("it holds something that is no whole number", whose);
  }
}
