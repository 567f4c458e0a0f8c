import { TollgateError } from "../error.ts";

/** The error for a state that step did not answer. */
export const unreadable = (problem: string) =>
  new TollgateError("invalid_state", `the stored state cannot be read: ${problem}`);

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

/** The way back. What is no list of lists of numbers is refused. */
export function flat(states: unknown): number[] {
  if (!Array.isArray(states)) throw unreadable("its states are not a list");
  const numbers: number[] = [];
  for (const state of states) {
    if (!Array.isArray(state)) throw unreadable("a state in it is not a list of numbers");
    if (!state.every((number) => typeof number === "number"))
      throw unreadable("it holds something that is no number");
    numbers.push(state.length);
    // One by one: a long log is more than a call takes arguments.
    for (const number of state) numbers.push(number);
  }
  return numbers;
}
