import { useEffect, useState } from "react";
import type { BasicThrottle } from "../throttle/basic-throttle.ts";
import type { QueueState } from "../throttle/places.ts";
import { useCountdown } from "./use-countdown.ts";

const idle: QueueState = { pending: 0, position: 0, wait: 0 };

/**
 * Returns the queue of a throttle: how many calls wait, and the position and wait of the call that waits longest. The
 * wait counts down.
 *
 * @example
 * ```tsx
 * import { useQueue, useThrottle } from "tollgate/react";
 *
 * export function Uploads() {
 *   const throttle = useThrottle({ algorithm: "token_bucket", capacity: 2, refillRate: 1 });
 *   const { pending, wait = 0 } = useQueue(throttle);
 *   return <p>{pending} files wait, the last for about {Math.ceil(wait / 1000)} s</p>;
 * }
 * ```
 */
export function useQueue(throttle: Pick<BasicThrottle, "subscribe">): QueueState {
  const [queue, setQueue] = useState(idle);
  useEffect(() => {
    const unsubscribe = throttle.subscribe(setQueue);
    return () => {
      unsubscribe();
      setQueue(idle);
    };
  }, [throttle]);
  const { pending, position, wait } = queue;
  const left = useCountdown(wait ?? 0, queue);
  return { pending, position, wait: wait === undefined ? undefined : left };
}
