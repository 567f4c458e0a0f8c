import { startTimer, type Timer } from "./alarm.ts";

/** Waits of a given length before a call gets in line: `clear` and signals end them. */
export class Delays {
  readonly #timer: Timer;
  readonly #failures = new Set<(reason: unknown) => void>();

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Calls `done` after a while, or `failed` if it is ended before. Returns a function that stops both. */
  start(
    milliseconds: number,
    signal: AbortSignal | undefined,
    done: () => void,
    failed: (reason: unknown) => void,
  ): () => void {
    if (signal?.aborted) {
      failed(signal.reason);
      return () => {};
    }
    const fail = (reason: unknown) => {
      stop();
      failed(reason);
    };
    const onAbort = () => fail(signal?.reason);
    const ended = () => {
      stop();
      done();
    };
    const stopTimer = startTimer(this.#timer, ended, milliseconds);
    const stop = () => {
      stopTimer();
      this.#failures.delete(fail);
      signal?.removeEventListener("abort", onAbort);
    };
    this.#failures.add(fail);
    signal?.addEventListener("abort", onAbort);
    return stop;
  }

  /** Ends all. */
  clear(reason: unknown): void {
    for (const fail of this.#failures) fail(reason);
  }
}
