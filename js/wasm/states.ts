import { fill, inWords, TollgateError } from "../errors/error.ts";
import type { Key, StoredRow } from "../types.ts";
import { elements } from "./elements.ts";
import {
  algorithms,
  exceptionName,
  exceptionSchema,
  invalidStateText,
  stateNumbersText,
  unknownStateText,
} from "./generated.ts";

/** Returns the error for a state that cannot be read; with a key, for that key's state. */
export function unreadable(problem: string, key?: Key): TollgateError {
  const message = fill(invalidStateText, { problem });
  return new TollgateError("invalid_state", key === undefined ? message : `${inWords(key)}: ${message}`);
}

/** Returns the name of an algorithm at a position, or of an exception. */
const algorithmName = (position: unknown): string =>
  position === exceptionSchema.position
    ? exceptionName
    : (Object.values(algorithms).find((algorithm) => algorithm.position === position)?.name ??
      unknownStateText);

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

/** One key's rows in the format that Rust loads and saves: each a list of numbers after its length. */
export class Rows {
  readonly numbers: number[] = [];
  readonly #names: ShapeNames;

  constructor(names: ShapeNames) {
    this.#names = names;
  }

  /** Adds a row by the name of its policy and the numbers that follow it. */
  add(name: string, row: readonly number[]): void {
    this.numbers.push(row.length + 1, this.#names.number(name));
    // One by one: a long log has more numbers than a call may have arguments.
    for (const number of row) this.numbers.push(number);
  }

  /** Returns the error for the row at an index, which Rust rejected. */
  error(index: number, key?: Key): TollgateError {
    const [name, row] = saved(this.numbers)[index] ?? [-1, []];
    const words = { name: inWords(this.#names.names[name] ?? ""), algorithm: algorithmName(row[0]) };
    return unreadable(fill(stateNumbersText, words), key);
  }
}

/** A row that Rust saved: the number of its name, and the numbers that follow it. */
export type SavedRow = readonly [name: number, row: readonly number[]];

/** Returns when a row ends. */
export const endOf = (row: readonly number[]): number => row[2] as number;

/** Parses the list that Rust saved for one key. */
export function saved(flat: readonly number[]): SavedRow[] {
  const rows: SavedRow[] = [];
  for (let at = 0; at < flat.length; ) {
    const end = at + 1 + (flat[at] as number);
    rows.push([flat[at + 1] as number, flat.slice(at + 2, end)]);
    at = end;
  }
  return rows;
}

/** Returns the saved rows that have not ended as they are stored. */
export const storedRows = (flat: readonly number[], { names }: ShapeNames, now: number): StoredRow[] =>
  saved(flat)
    .filter(([, row]) => endOf(row) > now)
    .map(([name, row]) => [names[name] as string, row]);

/** Copies lists of numbers, each read once, and checks the copies. */
export function copiedLists(lists: unknown, key?: Key): number[][] {
  if (!Array.isArray(lists)) throw unreadable("its states are not an array", key);
  return elements(lists).map((list) => copiedNumbers(list, key));
}

/** Copies a list of numbers, each read once, and checks the copy. */
export function copiedNumbers(list: unknown, key?: Key): number[] {
  if (!Array.isArray(list)) throw unreadable("a state in it is not an array of numbers", key);
  const numbers = elements(list);
  if (!numbers.every(Number.isSafeInteger))
    throw unreadable("it holds something that is not an integer", key);
  return numbers as number[];
}
