import { never } from "./alarm.ts";
import type { Limits } from "./limits.ts";
import type { Line } from "./line.ts";

/** The place of a call among those that wait for the same key. */
export interface Place {
  /** 1 for the next to be let through. */
  readonly position: number;
  /**
   * In how many milliseconds it is let through, if no other call leaves or goes before it; undefined under a shared
   * budget, which other tabs use as well, and under a concurrency policy, since the end of running work is not known.
   */
  readonly wait: number | undefined;
}

/** The state of a queue. */
export interface QueueState {
  /** How many calls wait. */
  readonly pending: number;
  /** The position of the call that waits longest, among those of its key; 0 if none waits. */
  readonly position: number;
  /** In how many milliseconds that call is let through; undefined if it cannot be known, as for `Place`. */
  readonly wait: number | undefined;
}

/**
 * Yields calls of the listeners of a line whose places have changed since their last call. The waits are computed by a
 * copy of the limiter whose clock runs ahead; without a limiter they are undefined. `last` is called with the place of
 * the last waiter and the time of its turn, if there is one.
 * @internal
 */
export function* changedPlaces(
  line: Line,
  limits: Limits | undefined,
  now: number,
  last?: (position: number, at: number | undefined) => void,
): Generator<() => void> {
  const { key, listeners } = line;
  let left = last ? never : listeners.size;
  if (!left) return;
  let at = Math.max(now, line.pausedUntil);
  let position = 0;
  const copy = limits?.ahead(key, () => at);
  for (const waiter of line.inOrder()) {
    position += 1;
    if (copy) {
      // A cost that never fits was rejected before it waited.
      at += copy.peek(key, waiter.cost).retryAfter;
      copy.hit(key, waiter.cost);
    }
    const listener = listeners.get(waiter);
    if (!listener) continue;
    const place = { position, wait: copy && at - now };
    const text = `${position} ${copy && at}`;
    if (listener.last !== text) yield () => listener.listen(place);
    listener.last = text;
    left -= 1;
    if (!left) break;
  }
  copy?.[Symbol.dispose]();
  last?.(position, copy && at);
}
