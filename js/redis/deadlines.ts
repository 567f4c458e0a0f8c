/** Something that is given up at a local time. */
export interface Due {
  readonly due: number;
  giveUp(): void;
}

/** Gives up what is not finished in time, with one timer for all. */
export class Deadlines {
  readonly #pending = new Set<Due>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  add(item: Due): void {
    this.#pending.add(item);
    if (item.due < this.#firesAt) this.#set(item.due);
  }

  remove(item: Due): void {
    this.#pending.delete(item);
    if (this.#pending.size > 0) return;
    clearTimeout(this.#timer);
    this.#firesAt = Number.POSITIVE_INFINITY;
  }

  #set(due: number): void {
    clearTimeout(this.#timer);
    this.#firesAt = due;
    // After a process was busy for long, its timers come before the replies that have arrived; those are read first.
    const fire = () => setImmediate(() => this.#check());
    this.#timer = setTimeout(fire, Math.max(0, Math.ceil(due - performance.now())));
  }

  #check(): void {
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const item of this.#pending) {
      if (item.due <= now) {
        this.#pending.delete(item);
        item.giveUp();
      } else next = Math.min(next, item.due);
    }
    this.#firesAt = Number.POSITIVE_INFINITY;
    if (next < Number.POSITIVE_INFINITY) this.#set(next);
  }
}
