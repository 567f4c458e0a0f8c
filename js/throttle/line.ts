import type { Costs, Decision, Key } from "../types.ts";
import { never } from "./alarm.ts";
import { Heap, type Placed } from "./heap.ts";
import type { Place } from "./places.ts";

/** A call that waits. */
export interface Waiter {
  readonly line: Line;
  readonly cost: Costs;
  readonly priority: number;
  /** The time at which it gives up. */
  readonly deadline: number;
  /** Takes the cost instead of a hit. */
  readonly take: ((costs: Costs) => Decision) | undefined;
  readonly resolve: (decision: Decision) => void;
  readonly reject: (reason: unknown) => void;
  /** The rank that it is in; undefined once it has left the line. */
  rank: Rank | undefined;
  previous: Waiter | undefined;
  next: Waiter | undefined;
  /** The event of its deadline. */
  event?: Event | undefined;
  /** Stops listening to its signal. */
  unlisten?: (() => void) | undefined;
}

/** The waiters of one priority in order of arrival: a linked list, so that any can be removed in constant time. */
interface Rank extends Placed {
  readonly priority: number;
  first: Waiter | undefined;
  last: Waiter | undefined;
}

/** A waiter's function that is called with its place. */
interface Listener {
  readonly listen: (place: Place) => void;
  /** The place of the last call, as a text. */
  last?: string;
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
  /** The event at which the line is served again. */
  event: Event | undefined;
  /** The time until which no waiter is let through, whatever the policy allows. */
  pausedUntil = 0;
  #pauseLength = 0;
  /** Whether a store is deciding about the first waiter. */
  deciding = false;
  /** Since when a store has been deciding without a break: a waiter in time then is not rejected for a slow store. */
  decidingSince = never;
  /** Whether the store has changed since it began to decide. */
  outdated = false;
  /** The waiters whose time ran out while the store decided. */
  readonly overdue = new Set<Waiter>();
  /** The listeners of waiters that want to know their place. */
  readonly listeners = new Map<Waiter, Listener>();
  readonly #ranks = new Map<number, Rank>();
  readonly #order = new Heap<Rank>((one, other) => one.priority > other.priority);

  constructor(key: Key) {
    this.key = key;
  }

  get wakeAt(): number {
    return this.event?.at ?? never;
  }

  /** Lets no waiter through until a time; a pause that ends later stays. Returns whether it was set. */
  pause(until: number, now: number): boolean {
    if (until <= this.pausedUntil) return false;
    this.pausedUntil = until;
    this.#pauseLength = until - now;
    return true;
  }

  /** Shortens a pause that a clock which stepped back would make longer than it was. */
  followClock(now: number): void {
    this.pausedUntil = Math.min(this.pausedUntil, now + this.#pauseLength);
  }

  /** Returns the waiter whose turn it is. */
  first(): Waiter | undefined {
    return this.#order.first()?.first;
  }

  /** Yields all waiters in the order of their turns. */
  *inOrder(): Generator<Waiter> {
    for (const rank of [...this.#ranks.values()].sort((one, other) => other.priority - one.priority))
      for (let waiter = rank.first; waiter !== undefined; waiter = waiter.next) yield waiter;
  }

  add(waiter: Waiter): void {
    const rank = this.#ranks.get(waiter.priority) ?? this.#addRank(waiter.priority);
    waiter.rank = rank;
    waiter.previous = rank.last;
    if (rank.last === undefined) rank.first = waiter;
    else rank.last.next = waiter;
    rank.last = waiter;
  }

  /** Removes a waiter, wherever it is. */
  remove(waiter: Waiter): void {
    const { rank, previous, next } = waiter;
    if (rank === undefined) return;
    if (previous === undefined) rank.first = next;
    else previous.next = next;
    if (next === undefined) rank.last = previous;
    else next.previous = previous;
    // A reference to this waiter must not keep the others alive.
    waiter.rank = waiter.previous = waiter.next = undefined;
    this.overdue.delete(waiter);
    this.listeners.delete(waiter);
    if (rank.first !== undefined) return;
    this.#ranks.delete(rank.priority);
    this.#order.remove(rank);
  }

  #addRank(priority: number): Rank {
    const rank: Rank = { priority, first: undefined, last: undefined, place: -1 };
    this.#ranks.set(priority, rank);
    this.#order.push(rank);
    return rank;
  }
}
