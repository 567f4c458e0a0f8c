import type { Costs, Decision, Key } from "../types.ts";
import { never } from "./alarm.ts";
import { Heap, type Placed } from "./heap.ts";
import type { Place } from "./places.ts";

/** A call that waits. */
export interface Waiter {
  readonly line: Line;
  readonly cost: Costs;
  readonly priority: number;
  /** When it gives up. */
  readonly deadline: number;
  /** Takes what it waits for, where that is not a hit. */
  readonly take: ((costs: Costs) => Decision) | undefined;
  readonly resolve: (decision: Decision) => void;
  readonly reject: (reason: unknown) => void;
  /** Those of its priority; none once it was let through, or has gone. */
  rank: Rank | undefined;
  previous: Waiter | undefined;
  next: Waiter | undefined;
  /** Its deadline among the throttle's events. */
  event?: Event | undefined;
  /** Stops listening to its signal. */
  forget?: (() => void) | undefined;
}

/** The waiters of one priority in order of arrival, linked, so that one can leave from anywhere at once. */
interface Rank extends Placed {
  readonly priority: number;
  first: Waiter | undefined;
  last: Waiter | undefined;
}

/** A waiter's function that is told its place. */
interface Listener {
  readonly tell: (place: Place) => void;
  told?: string;
}

/** A time at which a line is served again, or at which a waiter gives up. */
export interface Event extends Placed {
  readonly at: number;
  readonly line: Line;
  readonly waiter: Waiter | undefined;
}

/** The waiters of one key: the highest priority first, then in order of arrival. */
export class Line {
  readonly key: Key;
  /** When it is served again. */
  event: Event | undefined;
  /** Until when a server has asked to be left alone. */
  heldUntil = 0;
  /** Whether a store is being asked for its first. */
  asking = false;
  /** Since when it has been asked without a break: who could pass then is not turned away for a slow store. */
  askingSince = never;
  /** Whether the store has changed since it was asked. */
  outdated = false;
  /** Whose time ran out while the store was asked. */
  readonly overdue = new Set<Waiter>();
  /** Who is told its place, and what it was told last. */
  readonly listeners = new Map<Waiter, Listener>();
  readonly #ranks = new Map<number, Rank>();
  readonly #order = new Heap<Rank>((one, other) => one.priority > other.priority);

  constructor(key: Key) {
    this.key = key;
  }

  get wakeAt(): number {
    return this.event?.at ?? never;
  }

  /** The waiter whose turn it is. */
  first(): Waiter | undefined {
    return this.#order.first()?.first;
  }

  /** All waiters in the order of their turns. */
  *inOrder(): Generator<Waiter> {
    for (const rank of [...this.#ranks.values()].sort((one, other) => other.priority - one.priority))
      for (let waiter = rank.first; waiter !== undefined; waiter = waiter.next) yield waiter;
  }

  add(waiter: Waiter): void {
    const rank = this.#ranks.get(waiter.priority) ?? this.#begin(waiter.priority);
    waiter.rank = rank;
    waiter.previous = rank.last;
    if (rank.last === undefined) rank.first = waiter;
    else rank.last.next = waiter;
    rank.last = waiter;
  }

  /** Drops a waiter, wherever it stands. */
  remove(waiter: Waiter): void {
    const { rank, previous, next } = waiter;
    if (rank === undefined) return;
    if (previous === undefined) rank.first = next;
    else previous.next = next;
    if (next === undefined) rank.last = previous;
    else next.previous = previous;
    // Whoever still holds this one must not hold the others by it.
    waiter.rank = waiter.previous = waiter.next = undefined;
    this.overdue.delete(waiter);
    this.listeners.delete(waiter);
    if (rank.first !== undefined) return;
    this.#ranks.delete(rank.priority);
    this.#order.remove(rank);
  }

  #begin(priority: number): Rank {
    const rank: Rank = { priority, first: undefined, last: undefined, place: -1 };
    this.#ranks.set(priority, rank);
    this.#order.push(rank);
    return rank;
  }
}
