/** An item that times out, by the local clock. */
export interface Timed {
  readonly deadline: number;
  timeOut(): void;
}

/** The deadlines of pending items, with one timer for all. */
export class Deadlines {
  readonly #pending = new Set<Timed>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  add(item: Timed): void {
    this.#pending.add(item);
    if (item.deadline < this.#firesAt) this.#setTimer(item.deadline);
  }

  remove(item: Timed): void {
    this.#pending.delete(item);
    if (this.#pending.size > 0) return;
    clearTimeout(this.#timer);
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  #setTimer(deadline: number): void {
    clearTimeout(this.#timer);
    this.#firesAt = deadline;
    // In a process that was blocked, timers fire before the replies that have arrived are read. Those come first.
    const fire = () => setImmediate(() => this.#check());
    this.#timer = setTimeout(fire, Math.max(0, Math.ceil(deadline - performance.now())));
  }

  #check(): void {
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const item of this.#pending) {
      if (item.deadline <= now) {
        this.#pending.delete(item);
        item.timeOut();
      } else next = Math.min(next, item.deadline);
    }
    this.#firesAt = Number.POSITIVE_INFINITY;
    if (next < Number.POSITIVE_INFINITY) this.#setTimer(next);
  }
}
