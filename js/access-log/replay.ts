import type { Candidate, CandidateSummary, PolicyCandidate } from "./candidate.ts";
import { type Difference, differenceOf } from "./difference.ts";
import type { Entries } from "./entries.ts";
import { everyone, Table } from "./keys.ts";
import { Log, type LogContext, type LogOptions, type Planner } from "./log.ts";
import { type EntryStream, merge } from "./merge.ts";
import { MissingFields } from "./missing.ts";
import type { Suggesting, Suggestion } from "./suggest.ts";
import type { SummaryOptions } from "./tally.ts";
import { TextBlocks } from "./text.ts";
import { type LeftOut, LeftOutLines } from "./unread.ts";

/** A log that can be read, piece by piece. */
export interface LogSource {
  readonly name: string;
  /** Returns its bytes, unpacked. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Returns the approximate time of its first entry; `-Infinity` if that is not known before it is read. */
  first(options: LogOptions): Promise<number>;
}

/** The result of a replay. */
export interface ReplaySummary {
  /** Lines of all logs that are not blank. */
  readonly lines: number;
  readonly unreadable: LeftOut;
  readonly withoutKey: LeftOut;
  /** Lines that were further out of order than is sorted; they count at the time of the line before. */
  readonly late: number;
  /** Lines that `where` and `only` left out. */
  readonly filtered: number;
  /** The first and the last time, in milliseconds since the epoch; undefined without hits. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** The fields that make the key; empty if only rules are tried, which have keys of their own. */
  readonly key: readonly string[];
  readonly candidates: readonly CandidateSummary[];
  readonly suggestions: readonly Suggestion[];
  /** Whom one of two policies denies and the other does not, if they are compared. */
  readonly difference?: Difference;
}

/** Replays logs through policies, by the logs' own times. */
export class Replay {
  readonly keys: Table = new Table();
  readonly candidates: Candidate[] = [];
  readonly measures: Suggesting[] = [];
  /** The two policies whose denied keys are compared. */
  compared: readonly [PolicyCandidate, PolicyCandidate] | undefined;
  readonly #options: LogOptions;
  readonly #context: LogContext;
  readonly #logs: Log[] = [];
  #late = 0;
  #from: number | undefined;
  #to: number | undefined;

  constructor(options: LogOptions, planner?: Planner) {
    this.#options = options;
    const [unreadable, withoutKey] = [new LeftOutLines(), new LeftOutLines()];
    const { cost = [], time = "time", where = [] } = options;
    // Beside rules, which have keys of their own, only a key that is named must be in a line.
    const { key = planner === undefined ? ["ip"] : [] } = options;
    const fields = [where.map(({ field }) => field), key, cost].flat().filter((field) => field !== everyone);
    const missing = new MissingFields(time, fields);
    this.#context = { keys: this.keys, unreadable, withoutKey, missing, planner };
  }

  /** How many lines were read. */
  get lines(): number {
    return this.#logs.reduce((sum, { lines }) => sum + lines, 0);
  }

  /** A field that a key, a time or a cost needs and no line has, and the error for it; undefined if there is none. */
  get missingField(): readonly [field: string, problem: string] | undefined {
    return this.#context.missing.problem();
  }

  /** Reads all logs to their ends. `onProgress` is called after each piece. */
  async read(
    sources: readonly LogSource[],
    onProgress: () => void | Promise<void> = () => {},
  ): Promise<void> {
    const isSingle = sources.length === 1;
    const streams = await Promise.all(
      sources.map(
        async (source): Promise<EntryStream> => ({
          first: isSingle ? Number.NEGATIVE_INFINITY : await source.first(this.#options),
          entries: () => this.#entries(source, onProgress),
        }),
      ),
    );
    this.#late += await merge(streams, (entries, from, to) => this.#replay(entries, from, to));
  }

  /** Returns the result; the suggestions are limits under which `percent` of the keys are never denied. */
  summary(options: SummaryOptions, percent = 100): ReplaySummary {
    const { unreadable, withoutKey } = this.#context;
    return {
      lines: this.lines,
      unreadable,
      withoutKey,
      filtered: this.#logs.reduce((sum, { filtered }) => sum + filtered, 0),
      late: this.#late + this.#logs.reduce((sum, { late }) => sum + late, 0),
      from: this.#from,
      to: this.#to,
      key: this.#options.key ?? ["ip"],
      candidates: this.candidates.map((candidate) => candidate.summary(options)),
      suggestions: this.measures.map((measure) => measure.suggestion(percent)),
      ...(this.compared && { difference: differenceOf(...this.compared, options.worst) }),
    };
  }

  async *#entries(source: LogSource, onProgress: () => void | Promise<void>): AsyncGenerator<Entries> {
    const log = new Log(source.name, this.#options, this.#context);
    const blocks = new TextBlocks();
    this.#logs.push(log);
    for await (const bytes of source.bytes()) {
      yield* log.read(blocks.push(bytes));
      await onProgress();
    }
    yield* log.read(blocks.end());
    yield* log.end();
  }

  #replay(entries: Entries, from: number, to: number): void {
    this.#from ??= entries.times[from];
    this.#to = entries.times[to - 1];
    for (const candidate of this.candidates) candidate.replay(entries, from, to);
    for (const measure of this.measures) measure.replay(entries, from, to);
  }
}
