/** Starts a timer, and returns a function that stops it. */
export type Timer = (callback: () => void, milliseconds: number) => () => void;

/**
 * Later than any time.
 * @internal
 */
export const never: number = Number.POSITIVE_INFINITY;

/** The longest time of a platform's timer, in milliseconds. */
const longest = 2 ** 31 - 1;

/**
 * The platform's timer. In Node, Bun and Deno it keeps the process alive: it runs only while calls wait.
 * @internal
 */
export const platformTimer: Timer = (callback, milliseconds) => {
  const timer = setTimeout(callback, milliseconds);
  return () => clearTimeout(timer);
};

/**
 * Starts a timer for any time, also one that is too long for a platform's. Returns a function that stops it.
 * @internal
 */
export function startTimer(timer: Timer, callback: () => void, milliseconds: number): () => void {
  let stop = timer(
    () => {
      if (milliseconds > longest) stop = startTimer(timer, callback, milliseconds - longest);
      else callback();
    },
    Math.min(milliseconds, longest),
  );
  return () => stop();
}

/**
 * One timer, set for the soonest event.
 * @internal
 */
export class Alarm {
  readonly #timer: Timer;
  readonly #ring: (due: number) => void;
  #at = never;
  #stop: (() => void) | undefined;

  constructor(timer: Timer, ring: (due: number) => void) {
    this.#timer = timer;
    this.#ring = ring;
  }

  /** Sets the timer for `at`; stops it if that is `never`. */
  set(at: number, now: number): void {
    if (at === this.#at) return;
    this.#stop?.();
    this.#at = at;
    this.#stop = undefined;
    if (at === never) return;
    const wait = Math.min(Math.max(at - now, 0), longest);
    this.#stop = this.#timer(() => {
      this.#at = never;
      this.#ring(now + wait);
    }, wait);
  }
}
