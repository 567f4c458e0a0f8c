import type { Costs, Decision, Key } from "../types.ts";
import { never } from "./alarm.ts";
import { Heap, type Placed } from "./heap.ts";
import type { Timed } from "./limits.ts";
import type { Place } from "./places.ts";

/** A call that waits. */
export interface Waiter {
  readonly line: Line;
  readonly cost: Costs;
  readonly priority: number;
  /** The time at which it gives up. */
  readonly deadline: number;
  /** Takes the cost instead of a hit. */
  readonly take: ((costs: Costs) => Decision | Promise<Timed>) | undefined;
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

/**
 * The waiters of one priority and one tenant in order of arrival: a linked list, so that any can be removed in constant
 * time.
 */
interface Rank extends Placed {
  readonly id: number | string;
  readonly priority: number;
  /** Of the ranks of one priority, the one with the lowest number goes first. */
  turn: number;
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

/** The waiters of one key: the highest priority first, then tenants in turn, then in order of arrival. */
export class Line {
  readonly key: Key;
  /** The event at which the line is served again. */
  event: Event | undefined;
  /** The time until which no waiter is let through, whatever the policy allows. */
  pausedUntil = 0;
  #pauseLength = 0;
  /** The waiter about whom a store is deciding: it was the first. */
  deciding: Waiter | undefined;
  /** Since when a store has been deciding without a break: a waiter in time then is not rejected for a slow store. */
  decidingSince = never;
  /** Whether the store has changed since it began to decide. */
  outdated = false;
  /** The waiters whose time ran out while the store decided. */
  readonly overdue = new Set<Waiter>();
  /** The listeners of waiters that want to know their place. */
  readonly listeners = new Map<Waiter, Listener>();
  readonly #ranks = new Map<number | string, Rank>();
  readonly #order = new Heap<Rank>(
    (one, other) =>
      one.priority > other.priority || (one.priority === other.priority && one.turn < other.turn),
  );
  #turns = 0;

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
    const ranks = [...this.#ranks.values()].sort(
      (one, other) => other.priority - one.priority || one.turn - other.turn,
    );
    for (let [at, end] = [0, 0]; at < ranks.length; at = end) {
      const { priority } = ranks[at] as Rank;
      while (ranks[end]?.priority === priority) end += 1;
      // One of each tenant, again and again.
      for (let round = ranks.slice(at, end).map(({ first }) => first); round.length > 0; ) {
        const rest: (Waiter | undefined)[] = [];
        for (const waiter of round) {
          if (waiter === undefined) continue;
          yield waiter;
          rest.push(waiter.next);
        }
        round = rest;
      }
    }
  }

  /** Adds a waiter; those of one tenant take turns with those of others. */
  add(waiter: Waiter, tenant: Key | undefined): void {
    const { priority } = waiter;
    const id = tenant === undefined ? priority : `${priority} ${typeof tenant} ${tenant}`;
    const rank = this.#ranks.get(id) ?? this.#addRank(id, priority);
    waiter.rank = rank;
    waiter.previous = rank.last;
    if (rank.last === undefined) rank.first = waiter;
    else rank.last.next = waiter;
    rank.last = waiter;
  }

  /** Removes a waiter, wherever it is. If it was served, it is the turn of the next tenant. */
  remove(waiter: Waiter, isServed = false): void {
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
    if (rank.first === undefined) {
      this.#ranks.delete(rank.id);
      this.#order.remove(rank);
    } else if (isServed) {
      this.#order.remove(rank);
      this.#lineUp(rank);
    }
  }

  #addRank(id: number | string, priority: number): Rank {
    const rank: Rank = { id, priority, turn: 0, first: undefined, last: undefined, place: -1 };
    this.#ranks.set(id, rank);
    this.#lineUp(rank);
    return rank;
  }

  /** Puts a rank behind all others of its priority. */
  #lineUp(rank: Rank): void {
    this.#turns += 1;
    rank.turn = this.#turns;
    this.#order.push(rank);
  }
}
