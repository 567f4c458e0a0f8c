import { afterReading, ticksOf } from "../deadline.ts";

/** An item with a deadline. */
export interface Timed {
  /** The tick after which it is late. Set when it is added. */
  deadline: number;
  /** Its position among the pending items; -1 if it is not pending. */
  position: number;
}

/** A timer. Those of Node, Bun and Deno can be told whether they keep the process alive. */
type Timer = ReturnType<typeof setTimeout> & { ref?(): unknown; unref?(): unknown };

/** The deadlines of pending items, each so long after it was added, with one timer for all. */
export class Deadlines<Item extends Timed> {
  readonly #timeOut: (item: Item) => void;
  /** The length of a tick in milliseconds, and how many are a timeout. */
  readonly #length: number;
  readonly #count: number;
  /** In no order. In a Set, removed items were seen to survive minor garbage collections, which then took longer. */
  readonly #pending: Item[] = [];
  #timer: Timer | undefined;
  /** How many ticks there were. */
  #ticks = 0;

  /** `timeOut` is called with each item that is pending `timeout` milliseconds after it was added. */
  constructor(timeout: number, timeOut: (item: Item) => void) {
    this.#timeOut = timeOut;
    [this.#length, this.#count] = ticksOf(timeout);
  }

  /** Whether no item is pending. */
  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  add(item: Item): void {
    item.position = this.#pending.push(item) - 1;
    item.deadline = this.#ticks + this.#count;
    if (this.#timer === undefined) this.#setTimer();
    else {
      // The tick that has begun does not count.
      item.deadline++;
      if (item.position === 0) this.#timer.ref?.();
    }
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

  /** Returns how long an item may still wait, in milliseconds; 0 if it is late. */
  left({ deadline }: Item): number {
    return Math.max(0, deadline - this.#ticks) * this.#length;
  }

  #setTimer(): void {
    this.#timer = setTimeout(() => afterReading(() => this.#tick()), this.#length) as Timer;
  }

  #tick(): void {
    this.#ticks++;
    this.#timer = undefined;
    for (const item of [...this.#pending]) {
      if (item.position < 0 || item.deadline > this.#ticks) continue;
      this.remove(item);
      this.#timeOut(item);
    }
    if (this.#pending.length > 0 && this.#timer === undefined) this.#setTimer();
  }
}
