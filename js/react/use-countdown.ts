import { useEffect, useRef, useState } from "react";

/** A second, in milliseconds. */
export const second = 1_000;

/**
 * Returns how many milliseconds are left of `wait`, and renders again each second. It starts anew when `from` is another
 * object, or `wait` another time.
 */
export function useCountdown(wait: number, from: unknown): number {
  const [count, setCount] = useState({ wait, from, left: wait });
  const end = useRef({ wait: 0, from: undefined as unknown, at: 0 });
  useEffect(() => {
    if (!(wait > 0) || wait === Number.POSITIVE_INFINITY) return undefined;
    // Effects run again where React mounts a component again, and that must not start the countdown anew.
    if (end.current.from !== from || end.current.wait !== wait)
      end.current = { wait, from, at: Date.now() + wait };
    const left = () => Math.max(end.current.at - Date.now(), 0);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tick = () => {
      setCount({ wait, from, left: left() });
      schedule();
    };
    const schedule = () => {
      // At whole seconds, so that what is shown does not skip one.
      if (left() > 0) timer = setTimeout(tick, left() % second || second);
    };
    schedule();
    return () => clearTimeout(timer);
  }, [wait, from]);
  return count.from === from && count.wait === wait ? count.left : wait;
}
