import type { Timer } from "../throttle/alarm.ts";
import type { Key } from "../types.ts";
import type { BudgetReservation } from "./limiter.ts";

/** The longest pause between two tries: calls elsewhere may use less than they reserved. */
const longestPause = 1_000;

/** A call that waits: `wake` ends its pause. */
interface Place {
  wake: () => void;
}

/** Calls that were denied and try again until they are allowed, each key's in their order: only the first one tries. */
export class Waiting {
  readonly #most: number | undefined;
  readonly #clock: () => number;
  readonly #timer: Timer;
  readonly #lines = new Map<Key, Place[]>();

  /** Waits at most so many milliseconds; `undefined` for not at all. */
  constructor(most: number | undefined, clock: () => number, timer: Timer) {
    this.#most = most;
    this.#clock = clock;
    this.#timer = timer;
  }

  /** Lets the first call of a key try again now, since an amount is free. */
  wake(key: Key): void {
    this.#lines.get(key)?.[0]?.wake();
  }

  /** Reserves until that is allowed, or can never be, or the time is over. Returns the last reservation. */
  async until(
    key: Key,
    reserve: () => Promise<BudgetReservation>,
    signal: AbortSignal | undefined,
  ): Promise<BudgetReservation> {
    if (this.#most === undefined) return reserve();
    const end = this.#clock() + this.#most;
    let retryAfter = longestPause;
    if (!this.#lines.has(key)) {
      const reservation = await reserve();
      if (isLast(reservation)) return reservation;
      retryAfter = reservation.decision.retryAfter;
    }
    const line = this.#lines.get(key) ?? [];
    this.#lines.set(key, line);
    const place: Place = { wake() {} };
    line.push(place);
    try {
      for (;;) {
        const left = end - this.#clock();
        const pause = line[0] === place ? Math.min(retryAfter, longestPause, left) : left;
        if (left > 0) await this.#pause(place, Math.max(pause, 1), signal);
        const isOver = this.#clock() >= end;
        if (!isOver && line[0] !== place) continue;
        const reservation = await reserve();
        if (isOver || isLast(reservation)) return reservation;
        retryAfter = reservation.decision.retryAfter;
      }
    } finally {
      line.splice(line.indexOf(place), 1);
      if (line.length === 0) this.#lines.delete(key);
      else line[0]?.wake();
    }
  }

  /** Pauses until the time is over, the place is woken, or the signal aborts. */
  #pause(place: Place, milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (then: () => void) => () => {
        stop();
        place.wake = () => {};
        signal?.removeEventListener("abort", abort);
        then();
      };
      const abort = end(() => reject(signal?.reason));
      place.wake = end(resolve);
      const stop = this.#timer(place.wake, milliseconds);
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort);
    });
  }
}

/** Returns whether another try is of no use. */
const isLast = ({ decision }: BudgetReservation): boolean =>
  decision.allowed || decision.retryAfter === Number.POSITIVE_INFINITY;
