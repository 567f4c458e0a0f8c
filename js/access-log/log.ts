import { type Condition, filterOf } from "./conditions.ts";
import { detect, type FormatOptions } from "./detect.ts";
import { type Entries, type LineDetails, type LinePlace, Sorter } from "./entries.ts";
import type { Field, Format } from "./format.ts";
import { KeptText } from "./kept-text.ts";
import { type KeyOf, keyOf, type Table } from "./keys.ts";
import type { MissingFields } from "./missing.ts";
import type { LeftOutLines } from "./unread.ts";

/** The options of a log. */
export interface LogOptions extends FormatOptions {
  /** The fields that make the key; the client's address by default. */
  readonly key?: readonly string[] | undefined;
  /** The field with the cost of a line; without one, each costs 1. */
  readonly cost?: string | undefined;
  /** The most lines by which a line may be out of order. */
  readonly sortWindow?: number | undefined;
  /** The conditions of a line that is counted. */
  readonly where?: readonly Condition[] | undefined;
  /** The only key whose lines are counted. */
  readonly only?: string | undefined;
}

/** Returns a function that returns the number of the plan of the last line, by rules. */
export type Planner = (format: Format) => () => number;

/** The common parts of the logs of one replay. */
export interface LogContext {
  readonly keys: Table;
  readonly unreadable: LeftOutLines;
  /** Lines that have a time, and no key. */
  readonly withoutKey: LeftOutLines;
  readonly missing: MissingFields;
  /** Undefined without rules. */
  readonly planner?: Planner | undefined;
}

/** The most texts that are kept, each about a megabyte. Of lines before them nothing more is known. */
const mostBlocks = 128;

/** How many lines are used to detect the format. */
const sampled = 20;

/** The error for a log whose format is not recognised. */
export class UnknownFormat extends Error {}

/** Reads the lines of one log, and yields its entries in order of time. */
export class Log {
  /** Lines that are not blank. */
  lines = 0;
  /** Lines that do not meet the conditions, or are of other keys than the only one. */
  filtered = 0;
  readonly #name: string;
  readonly #options: LogOptions;
  readonly #context: LogContext;
  readonly #sorter: Sorter;
  #number = 0;
  #text = "";
  #format: Format | undefined;
  #key: KeyOf = () => -1;
  #plan: () => number = () => -1;
  #isWanted: (() => boolean) | undefined;
  #cost: Field | undefined;
  /** The texts of which lines are in the sorter, by their numbers: outside of the heap. */
  readonly #blocks = new Map<number, KeptText>();
  #block = 0;
  #details: readonly [path: Field, agent: Field, user: Field] | undefined;

  constructor(name: string, options: LogOptions, context: LogContext) {
    this.#name = name;
    this.#options = options;
    this.#context = context;
    this.#sorter = new Sorter((place) => this.#detailsAt(place), options.sortWindow);
  }

  /** How many lines were too far out of order. */
  get late(): number {
    return this.#sorter.late;
  }

  /** Reads a text of whole lines. Yields entries once enough are read to put them in order. */
  *read(text: string, isLast = false): Generator<Entries, void> {
    this.#text += text;
    if (this.#format === undefined && !this.#start(isLast)) return;
    const block = this.#text;
    this.#text = "";
    this.#block += 1;
    this.#blocks.set(this.#block, new KeptText(block));
    for (let at = 0; at < block.length; ) {
      at = this.#readUntilFull(block, at);
      if (!this.#sorter.isFull) continue;
      yield this.#sorter.take(false);
      this.#forgetBlocks();
    }
  }

  /** Forgets the texts of which no line is in the sorter any more. */
  #forgetBlocks(): void {
    const inUse = this.#sorter.blocks();
    for (const block of this.#blocks.keys())
      if (block <= this.#block - mostBlocks || (block < this.#block && !inUse.has(block)))
        this.#blocks.delete(block);
  }

  /** Reads a line once more. */
  #detailsAt({ block, start, end }: LinePlace): LineDetails {
    const text = this.#blocks.get(block);
    if (text === undefined) return { path: undefined, agent: undefined, user: undefined };
    const format = this.#format as Format;
    this.#details ??= [format.field("path"), format.field("agent"), format.field("user")];
    format.read(text.slice(start, end));
    const [path, agent, user] = this.#details;
    return { path: path(), agent: agent(), user: user() };
  }

  /** Yields the last entries. */
  *end(): Generator<Entries, void> {
    yield* this.read("", true);
    yield this.#sorter.take(true);
  }

  /** Detects the format from the first lines. Returns false while there are too few. */
  #start(isLast: boolean): boolean {
    const lines = firstLines(this.#text, sampled);
    if (lines.length < sampled && !isLast && this.#options.format === undefined) return false;
    if (lines.length === 0) return false;
    const format = detect(lines, this.#options);
    if (format === undefined)
      throw new UnknownFormat(
        `${this.#name} is not a combined, common, JSON lines or CSV log; its first line is ${JSON.stringify((lines[0] as string).slice(0, 60))}`,
      );
    const { keys, planner } = this.#context;
    const { key = ["ip"], cost, where = [] } = this.#options;
    if (where.length > 0) this.#isWanted = filterOf(where, format);
    this.#format = format;
    this.#key = keyOf(key, format, keys);
    if (planner !== undefined) this.#plan = planner(format);
    if (cost !== undefined) this.#cost = format.field(cost);
    return true;
  }

  #readUntilFull(block: string, from: number): number {
    const sorter = this.#sorter;
    let at = from;
    while (at < block.length && !sorter.isFull) {
      const end = block.indexOf("\n", at);
      const last = end > at && block.charCodeAt(end - 1) === 13 ? end - 1 : end;
      this.#number += 1;
      if (last > at) this.#readLine(block.slice(at, last), { block: this.#block, start: at, end: last });
      at = end + 1;
    }
    return at;
  }

  #readLine(line: string, place: LinePlace): void {
    const format = this.#format as Format;
    const error = format.read(line);
    if (error === "") return;
    this.lines += 1;
    if (error !== undefined) {
      this.#context.missing.look(format, false);
      this.#context.unreadable.add(this.#name, this.#number, line, error);
      return;
    }
    if (this.#isWanted?.() === false) {
      this.#context.missing.look(format, true);
      this.filtered += 1;
      return;
    }
    const cost = this.#cost === undefined ? 1 : amount(this.#cost());
    if (cost === undefined) {
      this.#context.missing.look(format, true);
      this.#context.unreadable.add(this.#name, this.#number, line, this.#wrongCost());
      return;
    }
    const key = this.#key();
    const { only } = this.#options;
    if (only !== undefined && typeof key === "number" && this.#context.keys.text(key) !== only) {
      this.#context.missing.clear();
      this.filtered += 1;
      return;
    }
    const plan = this.#plan();
    if (typeof key === "string") this.#context.missing.look(format, true);
    else this.#context.missing.clear();
    if (typeof key === "string") this.#context.withoutKey.add(this.#name, this.#number, line, key);
    const isKeyed = typeof key !== "string";
    if (isKeyed || plan >= 0) this.#sorter.add(format.time, isKeyed ? key : -1, plan, cost, place);
  }

  #wrongCost(): string {
    const found = this.#cost?.();
    const { cost } = this.#options;
    return found === undefined
      ? `it has no ${cost}`
      : `${cost}: ${JSON.stringify(found)} is not an integer from 0 to ${Number.MAX_SAFE_INTEGER}`;
  }
}

/** Parses a cost; undefined if invalid. */
function amount(text: string | undefined): number | undefined {
  const cost = text === undefined || !/^\d{1,16}$/.test(text) ? Number.NaN : Number(text);
  return Number.isSafeInteger(cost) ? cost : undefined;
}

/** Returns the first lines of a text that are not blank. */
function firstLines(text: string, most: number): string[] {
  const lines: string[] = [];
  for (let at = 0; at < text.length && lines.length < most; ) {
    const end = text.indexOf("\n", at);
    const line = text.slice(at, end).trim();
    if (line !== "") lines.push(line);
    at = end + 1;
  }
  return lines;
}
