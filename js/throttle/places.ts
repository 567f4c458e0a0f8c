import { RateLimiter } from "../limiter/limiter.ts";
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

/**
 * Yields calls of the listeners of a line whose places have changed since their last call. The waits are computed by a
 * copy of the limiter whose clock runs ahead; without a limiter they are undefined.
 * @internal
 */
export function* changedPlaces(
  line: Line,
  limiter: RateLimiter | undefined,
  now: number,
): Generator<() => void> {
  const { key, listeners } = line;
  let left = listeners.size;
  if (!left) return;
  let at = Math.max(now, line.pausedUntil);
  let position = 0;
  const copy = limiter && RateLimiter.restore(limiter.snapshot(key), { clock: () => at });
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
}
