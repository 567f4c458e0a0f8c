import type { Timer } from "../throttle/alarm.ts";
import type { BudgetReservation } from "./limiter.ts";

/** The longest pause between two tries: calls elsewhere may use less than they reserved. */
const longestPause = 1_000;

/** Calls that were denied and try again until they are allowed. */
export class Waiting {
  readonly #most: number | undefined;
  readonly #clock: () => number;
  readonly #timer: Timer;
  readonly #wakers = new Set<() => void>();

  /** Waits at most so many milliseconds; `undefined` for not at all. */
  constructor(most: number | undefined, clock: () => number, timer: Timer) {
    this.#most = most;
    this.#clock = clock;
    this.#timer = timer;
  }

  /** Lets all calls try again now, since an amount is free. */
  wake(): void {
    for (const wake of [...this.#wakers]) wake();
  }

  /** Reserves until that is allowed, or can never be, or the time is over. Returns the last reservation. */
  async until(
    reserve: () => Promise<BudgetReservation>,
    signal: AbortSignal | undefined,
  ): Promise<BudgetReservation> {
    let reservation = await reserve();
    if (this.#most === undefined) return reservation;
    const end = reservation.decision.allowed ? 0 : this.#clock() + this.#most;
    while (!reservation.decision.allowed) {
      const { retryAfter } = reservation.decision;
      const left = end - this.#clock();
      if (retryAfter === Number.POSITIVE_INFINITY || left <= 0) break;
      await this.#pause(Math.max(Math.min(retryAfter, longestPause, left), 1), signal);
      reservation = await reserve();
    }
    return reservation;
  }

  /** Pauses until the time is over, an amount is free, or the signal aborts. */
  #pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (then: () => void) => () => {
        stop();
        this.#wakers.delete(wake);
        signal?.removeEventListener("abort", abort);
        then();
      };
      const wake = end(resolve);
      const abort = end(() => reject(signal?.reason));
      const stop = this.#timer(wake, milliseconds);
      this.#wakers.add(wake);
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort);
    });
  }
}
