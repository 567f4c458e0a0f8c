/** A ring as it is stored: the number of its newest step since the epoch, and the counts, each at its number modulo the length. */
export type StoredRing = readonly [newest: number, ...counts: number[]];

/** Counts in equal steps of time, of which the last ones are kept. */
export class Ring {
  readonly #step: number;
  #newest: number;
  readonly #counts: number[];

  constructor(step: number, length: number, stored?: StoredRing) {
    this.#step = step;
    const [newest, ...counts] = stored ?? [0];
    this.#newest = newest;
    this.#counts = Array.from({ length }, (_, at) => counts[at] ?? 0);
  }

  /** Adds to the step of `now`, or to the newest one if the clock has gone back. */
  add(count: number, now: number): void {
    this.#advance(now);
    const at = this.#newest % this.#counts.length;
    this.#counts[at] = (this.#counts[at] as number) + count;
  }

  /** Returns the counts, the oldest first; the last one is of the step of `now`. */
  counts(now: number): number[] {
    this.#advance(now);
    const first = (this.#newest + 1) % this.#counts.length;
    return [...this.#counts.slice(first), ...this.#counts.slice(0, first)];
  }

  stored(): StoredRing {
    return [this.#newest, ...this.#counts];
  }

  #advance(now: number): void {
    const newest = Math.floor(now / this.#step);
    const passed = Math.min(newest - this.#newest, this.#counts.length);
    for (let step = 0; step < passed; step += 1) this.#counts[(newest - step) % this.#counts.length] = 0;
    this.#newest = Math.max(this.#newest, newest);
  }
}
