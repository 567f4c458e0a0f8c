import type { Decision, Key } from "../types.ts";

/** One who waits. */
export interface Waiter {
  readonly cost: number;
  readonly priority: number;
  /** When to give up. */
  readonly deadline: number;
  readonly resolve: (decision: Decision) => void;
  readonly reject: (reason: unknown) => void;
  /** Set once it has been let through, or has gone. */
  done: boolean;
  /** Stops listening to its signal. */
  forget?: (() => void) | undefined;
}

/** Those of one priority, in order of arrival. Who has gone is skipped when its turn comes. */
interface Rank {
  readonly priority: number;
  waiters: Waiter[];
  head: number;
}

/** Those who wait for one key: the highest priority first, then in order of arrival. */
export class Line {
  readonly key: Key;
  /** When its first is to be tried again. */
  wakeAt = Number.POSITIVE_INFINITY;
  /** Until when a server has asked to be left alone. */
  heldUntil = 0;
  /** Whether a store is being asked for its first. */
  asking = false;
  /** Since when it has been asked without a break: who could pass then is not turned away for a slow store. */
  askingSince = Number.POSITIVE_INFINITY;
  /** Whether the store has changed since it was asked. */
  outdated = false;
  /** Whose time ran out while the store was asked. */
  readonly overdue: Waiter[] = [];
  #ranks: Rank[] = [];

  constructor(key: Key) {
    this.key = key;
  }

  add(waiter: Waiter): void {
    let at = 0;
    while (at < this.#ranks.length && (this.#ranks[at] as Rank).priority > waiter.priority) at += 1;
    const rank = this.#ranks[at];
    if (rank?.priority === waiter.priority) rank.waiters.push(waiter);
    else this.#ranks.splice(at, 0, { priority: waiter.priority, waiters: [waiter], head: 0 });
  }

  /** The one whose turn it is. */
  first(): Waiter | undefined {
    for (let rank = this.#ranks[0]; rank !== undefined; rank = this.#ranks[0]) {
      while (rank.head < rank.waiters.length) {
        const waiter = rank.waiters[rank.head] as Waiter;
        if (!waiter.done) return waiter;
        this.#step(rank);
      }
      this.#ranks.shift();
    }
    return undefined;
  }

  /** Everyone who still waits. */
  *[Symbol.iterator](): Generator<Waiter> {
    for (const rank of this.#ranks) {
      for (let at = rank.head; at < rank.waiters.length; at += 1) {
        const waiter = rank.waiters[at] as Waiter;
        if (!waiter.done) yield waiter;
      }
    }
  }

  /** Moves on by one, and gives the room of those who went before back from time to time. */
  #step(rank: Rank): void {
    rank.head += 1;
    if (rank.head > 1_024 && rank.head * 2 > rank.waiters.length) {
      rank.waiters = rank.waiters.slice(rank.head);
      rank.head = 0;
    }
  }
}
