/** How many lines a line may be out of order by. */
export const defaultSortWindow = 65_536;

/** What is replayed of each line, in columns: when it happened, whose it is, and how much it weighs. */
export class Entries {
  readonly times: Float64Array;
  /** The number of its key; -1 if it has none. */
  readonly keys: Int32Array;
  /** The number of what the rules of a configuration say of it; -1 without a configuration. */
  readonly plans: Int32Array;
  readonly costs: Float64Array;
  length = 0;

  constructor(capacity: number) {
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
  }
}

/**
 * Sorts entries by time that are out of order by some lines only, as servers write them: when a request ends, several
 * processes at a time. Entries of the same time stay in their order.
 */
export class Sorter {
  /** How many entries were further out of order. They count at the time of the entry before them. */
  late = 0;
  readonly #window: number;
  readonly #held: Entries;
  readonly #sorted: Entries;
  #isSorted = true;
  #latest = Number.NEGATIVE_INFINITY;

  constructor(window = defaultSortWindow) {
    this.#window = window;
    this.#held = new Entries(2 * window);
    this.#sorted = new Entries(2 * window);
  }

  get isFull(): boolean {
    return this.#held.length === 2 * this.#window;
  }

  add(time: number, key: number, plan: number, cost: number): void {
    const held = this.#held;
    const at = held.length;
    if (at > 0 && time < (held.times[at - 1] as number)) this.#isSorted = false;
    held.times[at] = time;
    held.keys[at] = key;
    held.plans[at] = plan;
    held.costs[at] = cost;
    held.length = at + 1;
  }

  /** Returns entries in order, good until the next call: those that no line to come can precede, or all. */
  take(all: boolean): Entries {
    const [held, sorted] = [this.#held, this.#sorted];
    const order = this.#order();
    const count = all ? held.length : Math.max(0, held.length - this.#window);
    for (let at = 0; at < held.length; at += 1)
      sorted.set(at, held, order === undefined ? at : (order[at] as number));
    for (let at = count; at < held.length; at += 1) held.set(at - count, sorted, at);
    held.length -= count;
    sorted.length = count;
    this.#isSorted = true;
    this.#delay(sorted);
    return sorted;
  }

  #order(): Uint32Array | undefined {
    if (this.#isSorted) return undefined;
    const { times, length } = this.#held;
    const order = Uint32Array.from({ length }, (_, at) => at);
    return order.sort((one, other) => (times[one] as number) - (times[other] as number));
  }

  /** Time does not run back. */
  #delay({ times, length }: Entries): void {
    for (let at = 0; at < length && (times[at] as number) < this.#latest; at += 1) {
      times[at] = this.#latest;
      this.late += 1;
    }
    if (length > 0) this.#latest = times[length - 1] as number;
  }
}
