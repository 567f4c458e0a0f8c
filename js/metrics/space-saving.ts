/** A key among the most frequent. */
export interface Frequent {
  readonly key: string;
  /** How often it was added: this often at most, and `count - error` at least. */
  readonly count: number;
  /** By how much `count` may be too high. */
  readonly error: number;
}

interface Counter {
  key: string;
  count: number;
  error: number;
  /** Its place in the heap. */
  place: number;
}

/**
 * The most frequent keys of a stream in bounded memory, by the algorithm Space-Saving (Metwally, Agrawal, El Abbadi 2005).
 * With m counters and n additions: no count is too low, none is too high by more than n / m, and every key that was added
 * more than n / m times has a counter.
 */
export class SpaceSaving {
  readonly #most: number;
  readonly #counters = new Map<string, Counter>();
  /** A heap, whose first counter is the lowest. */
  readonly #heap: Counter[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Counts a key once, or as often as another sketch has counted it, with the error of that. A new key takes the counter of
   * the lowest, with its count as an error.
   */
  add(key: string, times = 1, error = 0): void {
    const heap = this.#heap;
    let counter = this.#counters.get(key);
    if (counter === undefined && heap.length < this.#most) {
      counter = { key, count: 0, error: 0, place: heap.length };
      heap.push(counter);
      this.#counters.set(key, counter);
      this.#up(counter);
    } else if (counter === undefined) {
      counter = heap[0];
      if (counter === undefined) return;
      this.#counters.delete(counter.key);
      counter.key = key;
      counter.error = counter.count;
      this.#counters.set(key, counter);
    }
    counter.count += times;
    counter.error += error;
    this.#down(counter);
  }

  /** Returns the most frequent keys, the highest count first. */
  top(most: number): Frequent[] {
    return this.#heap
      .toSorted((one, other) => other.count - one.count)
      .slice(0, most)
      .map(({ key, count, error }) => ({ key, count, error }));
  }

  /** Moves a counter towards the first place while it is lower than the one before it. */
  #up(counter: Counter): void {
    while (counter.place > 0) {
      const parent = this.#heap[(counter.place - 1) >> 1] as Counter;
      if (parent.count <= counter.count) return;
      this.#swap(parent, counter);
    }
  }

  /** Moves a counter away from the first place while one after it is lower. */
  #down(counter: Counter): void {
    for (;;) {
      const [left, right] = [this.#heap[2 * counter.place + 1], this.#heap[2 * counter.place + 2]];
      const lower = right !== undefined && right.count < (left as Counter).count ? right : left;
      if (lower === undefined || lower.count >= counter.count) return;
      this.#swap(counter, lower);
    }
  }

  #swap(one: Counter, other: Counter): void {
    const { place } = one;
    one.place = other.place;
    other.place = place;
    this.#heap[one.place] = one;
    this.#heap[other.place] = other;
  }
}
