import { fill, inWords, TollgateError } from "../errors/error.ts";
import type { StoredState } from "../types.ts";
import { elements } from "./elements.ts";
import {
  algorithms,
  exceptionName,
  invalidStateText,
  reservationNumbersText,
  schema,
  stateNumbersText,
} from "./generated.ts";

/** Returns the error for a state that cannot be read; with a key, for that key's state. */
export function unreadable(problem: string, key?: string): TollgateError {
  const message = fill(invalidStateText, { problem });
  return new TollgateError("invalid_state", key === undefined ? message : `${key}: ${message}`);
}

/** Returns the error for a state that is invalid. */
const invalidAs = (name: string, algorithm: string, key?: string): TollgateError =>
  unreadable(fill(stateNumbersText, { name: inWords(name), algorithm }), key);

/** The names of the algorithms by their positions, and that of a stored exception. */
const algorithmNames: readonly string[] = /* @__PURE__ */ [
  ...Object.values(algorithms).reduce((names: string[], { position, name }) => {
    names[position] = name;
    return names;
  }, []),
  exceptionName,
];

/** The numbers by which Rust knows the names of shapes: a policy's is its position, those of other names follow. */
export class ShapeNames {
  readonly names: string[];

  constructor(own: readonly string[]) {
    this.names = [...own];
  }

  /** Returns the number of a name. */
  number(name: string): number {
    const known = this.names.indexOf(name);
    return known < 0 ? this.names.push(name) - 1 : known;
  }
}

/** One key's states in the format that Rust loads and saves: each a list of numbers after its length. */
export class ShapedStates {
  readonly numbers: number[] = [];
  /** Name and algorithm of each state, for errors. */
  readonly #shapes: (readonly [name: string, algorithm: string | undefined])[] = [];
  readonly #names: ShapeNames;

  constructor(names: ShapeNames) {
    this.#names = names;
  }

  /** Adds a state by the position of its algorithm, and the parts of reservations that are open under it. */
  add(
    name: string,
    algorithm: number,
    scale: number,
    state: readonly number[],
    open: readonly (readonly number[])[] = [],
  ): void {
    this.#shapes.push([name, algorithmNames[algorithm]]);
    const length = 4 + state.length + open.length * schema.openNumbers;
    this.#push([length, this.#names.number(name), algorithm, scale, state.length]);
    this.#push(state);
    for (const part of open) {
      if (part.length !== schema.openNumbers) throw unreadable(reservationNumbersText);
      this.#push(part);
    }
  }

  /** Adds a stored state. */
  addStored({ name, algorithm, scale, state, open }: StoredState, key?: string): void {
    const position = algorithmNames.indexOf(algorithm);
    if (position < 0) throw invalidAs(name, algorithm, key);
    this.add(name, position, scale, state, open);
  }

  /** Returns the error for the state at an index, which Rust rejected. */
  error(index: number, key?: string): TollgateError {
    const [name, algorithm = "state"] = this.#shapes[index] ?? ["", undefined];
    return invalidAs(name, algorithm, key);
  }

  /** One by one: a long log has more numbers than a call may have arguments. */
  #push(list: readonly number[]): void {
    for (const number of list) this.numbers.push(number);
  }
}

/** A state that Rust saved. */
export interface SavedState {
  /** Number of the name, position of the algorithm, and scale. */
  readonly shape: readonly [name: number, algorithm: number, scale: number];
  readonly state: number[];
  readonly open: number[][];
}

/** Parses the list that Rust saved for one key. */
export function saved(flat: readonly number[]): SavedState[] {
  const states: SavedState[] = [];
  for (let at = 0; at < flat.length; ) {
    const end = at + 1 + (flat[at] as number);
    const [name, algorithm, scale, count] = flat.slice(at + 1, at + 5) as [number, number, number, number];
    const open: number[][] = [];
    for (let from = at + 5 + count; from < end; from += schema.openNumbers)
      open.push(flat.slice(from, from + schema.openNumbers));
    states.push({ shape: [name, algorithm, scale], state: flat.slice(at + 5, at + 5 + count), open });
    at = end;
  }
  return states;
}

/** Returns a saved state as it is stored. */
export function stored(
  { shape: [name, algorithm, scale], state, open }: SavedState,
  names: ShapeNames,
): StoredState {
  return {
    name: names.names[name] as string,
    algorithm: algorithmNames[algorithm] as string,
    scale,
    state,
    open,
  };
}

/** Copies lists of numbers, each read once, and checks the copies. */
export function copiedLists(lists: unknown, key?: string): number[][] {
  if (!Array.isArray(lists)) throw unreadable("its states are not an array", key);
  return elements(lists).map((list) => copiedNumbers(list, key));
}

/** Copies a list of numbers, each read once, and checks the copy. */
export function copiedNumbers(list: unknown, key?: string): number[] {
  if (!Array.isArray(list)) throw unreadable("a state in it is not an array of numbers", key);
  const numbers = elements(list);
  if (!numbers.every(Number.isSafeInteger))
    throw unreadable("it holds something that is not an integer", key);
  return numbers as number[];
}
