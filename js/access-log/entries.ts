/** The most lines by which a line may be out of order. */
export const defaultSortWindow = 65_536;

/** The sender of a logged request, and its target. */
export interface LineDetails {
  readonly path: string | undefined;
  readonly agent: string | undefined;
  readonly user: string | undefined;
}

/** Where the text of a line is: the number of its block, and its start and end there. */
export interface LinePlace {
  readonly block: number;
  readonly start: number;
  readonly end: number;
}

/** Reads a line once more: that of a denied hit, of which there are few. Without its text there are no details. */
export type ReadDetails = (place: LinePlace) => LineDetails;

/** The entries of a log in columns: time, key, plan and cost of each line, and where its text is. */
export class Entries {
  readonly times: Float64Array;
  /** The number of the key; -1 if the line has none. */
  readonly keys: Int32Array;
  /** The number of the plan by the rules of a configuration; -1 without a configuration. */
  readonly plans: Int32Array;
  readonly costs: Float64Array;
  readonly #blocks: Int32Array;
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;
  readonly #read: ReadDetails;
  length = 0;

  constructor(capacity: number, read: ReadDetails) {
    this.#read = read;
    this.#blocks = new Int32Array(capacity);
    this.#starts = new Int32Array(capacity);
    this.#ends = new Int32Array(capacity);
    this.times = new Float64Array(capacity);
    this.keys = new Int32Array(capacity);
    this.plans = new Int32Array(capacity);
    this.costs = new Float64Array(capacity);
  }

  set(at: number, from: Entries, index: number): void {
    this.times[at] = from.times[index] as number;
    this.keys[at] = from.keys[index] as number;
    this.plans[at] = from.plans[index] as number;
    this.costs[at] = from.costs[index] as number;
    this.setPlace(at, from.placeOf(index));
  }

  setPlace(at: number, { block, start, end }: LinePlace): void {
    this.#blocks[at] = block;
    this.#starts[at] = start;
    this.#ends[at] = end;
  }

  placeOf(at: number): LinePlace {
    return {
      block: this.#blocks[at] as number,
      start: this.#starts[at] as number,
      end: this.#ends[at] as number,
    };
  }

  /** Returns who sent a line, and what for. */
  detailsOf(at: number): LineDetails {
    return this.#read(this.placeOf(at));
  }

  /** Returns the blocks of the lines. */
  blocks(): ReadonlySet<number> {
    return new Set(this.#blocks.subarray(0, this.length));
  }
}

/**
 * Sorts entries by time that are out of order by some lines only, since several processes of a server each log a
 * request when it ends. Entries of the same time stay in their order.
 */
export class Sorter {
  /** How many entries were further out of order. They count at the time of the entry before them. */
  late = 0;
  readonly #window: number;
  readonly #buffer: Entries;
  readonly #sorted: Entries;
  #isSorted = true;
  #latest = Number.NEGATIVE_INFINITY;

  constructor(read: ReadDetails, window = defaultSortWindow) {
    this.#window = window;
    this.#buffer = new Entries(2 * window, read);
    this.#sorted = new Entries(2 * window, read);
  }

  /** Returns the blocks of the lines that were not taken yet. */
  blocks(): ReadonlySet<number> {
    return this.#buffer.blocks();
  }

  get isFull(): boolean {
    return this.#buffer.length === 2 * this.#window;
  }

  add(time: number, key: number, plan: number, cost: number, place: LinePlace): void {
    const buffer = this.#buffer;
    const at = buffer.length;
    if (at > 0 && time < (buffer.times[at - 1] as number)) this.#isSorted = false;
    buffer.times[at] = time;
    buffer.keys[at] = key;
    buffer.plans[at] = plan;
    buffer.costs[at] = cost;
    buffer.setPlace(at, place);
    buffer.length = at + 1;
  }

  /** Returns entries in order: all, or those that no later line can precede. They are valid until the next call. */
  take(all: boolean): Entries {
    const [buffer, sorted] = [this.#buffer, this.#sorted];
    const order = this.#order();
    const count = all ? buffer.length : Math.max(0, buffer.length - this.#window);
    for (let at = 0; at < buffer.length; at += 1)
      sorted.set(at, buffer, order === undefined ? at : (order[at] as number));
    for (let at = count; at < buffer.length; at += 1) buffer.set(at - count, sorted, at);
    buffer.length -= count;
    sorted.length = count;
    this.#isSorted = true;
    this.#delay(sorted);
    return sorted;
  }

  #order(): Uint32Array | undefined {
    if (this.#isSorted) return undefined;
    const { times, length } = this.#buffer;
    const order = Uint32Array.from({ length }, (_, at) => at);
    return order.sort((one, other) => (times[one] as number) - (times[other] as number));
  }

  /** Moves late entries to the latest time, so that time does not run back. */
  #delay({ times, length }: Entries): void {
    for (let at = 0; at < length && (times[at] as number) < this.#latest; at += 1) {
      times[at] = this.#latest;
      this.late += 1;
    }
    if (length > 0) this.#latest = times[length - 1] as number;
  }
}
