/** An item with a deadline, by the local clock. */
export interface Timed {
  readonly deadline: number;
  /** Its position among the pending items; -1 if it is not pending. */
  position: number;
}

/** A timer. Those of Node, Bun and Deno can be told whether they keep the process alive. */
type Timer = ReturnType<typeof setTimeout> & { ref?(): unknown; unref?(): unknown };

/** The deadlines of pending items, with one timer for all. */
export class Deadlines<Item extends Timed> {
  readonly #timeOut: (item: Item) => void;
  /** In no order. In a Set, removed items were seen to survive minor garbage collections, which then took longer. */
  readonly #pending: Item[] = [];
  #timer: Timer | undefined;
  #firesAt = Number.POSITIVE_INFINITY;

  /** Whether no item is pending. */
  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  /** `timeOut` is called with each item that is pending at its deadline. */
  constructor(timeOut: (item: Item) => void) {
    this.#timeOut = timeOut;
  }

  add(item: Item): void {
    item.position = this.#pending.push(item) - 1;
    if (item.deadline < this.#firesAt) this.#setTimer(item.deadline);
    else if (item.position === 0) this.#timer?.ref?.();
  }

  remove(item: Item): void {
    const last = item.position < 0 ? undefined : this.#pending.pop();
    if (last !== undefined && last !== item) {
      this.#pending[item.position] = last;
      last.position = item.position;
    }
    item.position = -1;
    // The timer stays, since setting one for each item costs more, and keeps no process alive.
    if (this.#pending.length === 0) this.#timer?.unref?.();
  }

  #setTimer(deadline: number): void {
    clearTimeout(this.#timer);
    this.#firesAt = deadline;
    // In a process that was blocked, timers fire before the replies that have arrived are read. Those come first.
    const fire = () => setImmediate(() => this.#check());
    this.#timer = setTimeout(fire, Math.max(0, Math.ceil(deadline - performance.now()))) as Timer;
  }

  #check(): void {
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const item of [...this.#pending]) {
      if (item.deadline <= now) {
        this.remove(item);
        this.#timeOut(item);
      } else next = Math.min(next, item.deadline);
    }
    this.#firesAt = Number.POSITIVE_INFINITY;
    if (next < Number.POSITIVE_INFINITY) this.#setTimer(next);
  }
}
