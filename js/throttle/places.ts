import { RateLimiter } from "../limiter.ts";
import type { Line } from "./line.ts";

/** Where a call stands among those that wait for the same key. */
export interface Place {
  /** 1 for the next to be let through. */
  readonly position: number;
  /**
   * In how many milliseconds it is let through, if nobody leaves and nobody goes before it; undefined under a shared
   * budget, which other tabs spend as well, and under a concurrency policy, since nobody knows when work ends.
   */
  readonly wait: number | undefined;
}

/**
 * Yields what tells the waiters of a line their places, where those have changed since they were last told. They are let
 * through one after the other in a copy of their limiter whose clock runs ahead; without a limiter, others spend the
 * budget, too.
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
  let at = Math.max(now, line.heldUntil);
  let position = 0;
  const copy = limiter && RateLimiter.restore(limiter.snapshot(key), { clock: () => at });
  for (const waiter of line.inOrder()) {
    position += 1;
    if (copy) {
      // One that never fits was turned away before it waited.
      at += copy.peek(key, waiter.cost).retryAfter;
      copy.hit(key, waiter.cost);
    }
    const listener = listeners.get(waiter);
    if (!listener) continue;
    const place = { position, wait: copy && at - now };
    const told = `${position} ${copy && at}`;
    if (listener.told !== told) yield () => listener.tell(place);
    listener.told = told;
    left -= 1;
    if (!left) break;
  }
  copy?.[Symbol.dispose]();
}
