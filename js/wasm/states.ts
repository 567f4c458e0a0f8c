import { fill, inWords, TollgateError } from "../errors/error.ts";
import { isCalendarScale, isInteger } from "../policy/durations.ts";
import type { Origin } from "../types.ts";
import { elements } from "./elements.ts";
import {
  earlierUnplacedText,
  invalidStateText,
  reservationNumbersText,
  schema,
  stateNumbersText,
  stateScaleText,
  statesDifferText,
} from "./generated.ts";

/** Returns the error for a state that cannot be read; with a key, for that key's state. */
export function unreadable(problem: string, key?: string): TollgateError {
  const message = fill(invalidStateText, { problem });
  return new TollgateError("invalid_state", key === undefined ? message : `${key}: ${message}`);
}

/** Returns the error for numbers that Rust rejected as the state of a policy; without a policy, as a reservation. */
export const unreadableAs = (origin: Origin | undefined, key?: string): TollgateError =>
  unreadable(
    origin === undefined
      ? reservationNumbersText
      : fill(stateNumbersText, { name: inWords(origin.name), algorithm: origin.algorithm }),
    key,
  );

/** Splits a flat list into lists, each of which follows its length. */
export function split(flat: readonly number[]): number[][] {
  const states: number[][] = [];
  for (let at = 0; at < flat.length; ) {
    const end = at + 1 + (flat[at] as number);
    states.push(flat.slice(at + 1, end));
    at = end;
  }
  return states;
}

/** Copies the lists of numbers of one key's states, each read once, and checks the copies. */
export function copiedStates(states: unknown, count: number, key?: string): number[][] {
  const copies = copiedLists(states, key);
  if (copies.length !== count) throw unreadable(statesDifferText, key);
  return copies;
}

/** Copies lists of numbers, each read once, and checks the copies. */
export function copiedLists(lists: unknown, key?: string): number[][] {
  if (!Array.isArray(lists)) throw unreadable("its states are not an array", key);
  return elements(lists).map((state) => {
    if (!Array.isArray(state)) throw unreadable("a state in it is not an array of numbers", key);
    const numbers = elements(state);
    if (!numbers.every(Number.isSafeInteger))
      throw unreadable("it holds something that is not an integer", key);
    return numbers as number[];
  });
}

/** One key's states, copied: a list of numbers for each policy, and rows for the states under other scales. */
export interface CopiedStates {
  readonly states: readonly (readonly number[])[];
  /** Rows of the position of the policy, scale, end and numbers. */
  readonly earlier: readonly (readonly number[])[];
  /**
   * Rows of an open reservation: four numbers of its id, start, end, ttl and an amount for each policy; if it was made
   * by the numbers of a call, also a limit and a rate for each policy.
   */
  readonly reservations: readonly (readonly number[])[];
}

/** Parses the list that Rust saved for one key under `policies` policies. */
export function saved(flat: readonly number[], policies: number): CopiedStates {
  return grouped(split(flat), policies);
}

/** Groups lists into states of the policies, states under other scales, and reservations, which begin with -1. */
export function grouped(lists: readonly number[][], policies: number): CopiedStates {
  const extras = lists.slice(policies);
  return {
    states: lists.slice(0, policies),
    earlier: extras.filter(([position]) => position !== -1),
    reservations: extras.filter(([position]) => position === -1).map((row) => row.slice(1)),
  };
}

/**
 * Returns one key's states in the format that Rust loads. For each of the limiter's own policies there are two lists,
 * each after its length: the scale and the numbers of the state of that name, and its state under another scale. A
 * state of another algorithm is left out, and its name added to `afresh`. A list for each open reservation follows,
 * with an amount, and the call's numbers if it has any, for each of the limiter's own policies.
 */
export function loadable(
  { states, earlier, reservations }: CopiedStates,
  origins: readonly Origin[],
  own: readonly Origin[],
  afresh: Set<string>,
  key?: string,
): number[] {
  if (!earlier.every((row) => isInteger(row[0], 0, origins.length - 1)))
    throw unreadable(earlierUnplacedText, key);
  const numbers: number[] = [];
  // One by one: a long log has more numbers than a call may have arguments.
  const add = (list: readonly number[]) => {
    for (const number of list) numbers.push(number);
  };
  // A single policy is the same one even if it was renamed.
  const isRenamed = own.length === 1 && origins.length === 1;
  const numberOf = (name: string) => (isRenamed ? 0 : origins.findIndex((origin) => origin.name === name));
  // The numbers of a call stay with their policy, unless its algorithm or scale changed.
  const callOf = ({ name, algorithm, scale }: Origin, calls: readonly number[]) => {
    const at = numberOf(name);
    const isSame = origins[at]?.algorithm === algorithm && origins[at]?.scale === scale;
    return isSame ? calls.slice(2 * at, 2 * at + 2) : [0, 0];
  };
  for (const { name, algorithm } of own) {
    const at = numberOf(name);
    const origin = origins[at];
    if (origin !== undefined && origin.algorithm !== algorithm) afresh.add(name);
    if (origin?.algorithm !== algorithm) {
      add([0, 0]);
      continue;
    }
    if (!isScale(origin)) throw unreadable(fill(stateScaleText, { name: inWords(name) }), key);
    const state = states[at] as readonly number[];
    const row = earlier.find(([position]) => position === at) ?? [0];
    add([1 + state.length, origin.scale]);
    add(state);
    add([row.length - 1]);
    add(row.slice(1));
  }
  for (const row of reservations) {
    const amounts = row.slice(schema.reservationHead);
    const calls = amounts.splice(origins.length);
    if (amounts.length !== origins.length || (calls.length !== 0 && calls.length !== 2 * origins.length))
      throw unreadable(reservationNumbersText, key);
    const ownCalls = calls.length === 0 ? [] : own.flatMap((policy) => callOf(policy, calls));
    add([schema.reservationHead + own.length + ownCalls.length]);
    add(row.slice(0, schema.reservationHead));
    add(own.map(({ name }) => amounts[numberOf(name)] ?? 0));
    add(ownCalls);
  }
  return numbers;
}

/** Returns true for a valid scale of the algorithm. */
const isScale = ({ algorithm, scale }: Origin): boolean =>
  isInteger(scale, 1) || (algorithm === "fix_window" && isCalendarScale(scale));
