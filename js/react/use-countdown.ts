import { useEffect, useRef, useState } from "react";

const second = 1_000;

/**
 * Returns how many milliseconds are left of `wait`, and renders again each second. It starts anew when `from` is another
 * object.
 */
export function useCountdown(wait: number, from: unknown): number {
  const [count, setCount] = useState({ from, left: wait });
  const end = useRef({ from: undefined as unknown, at: 0 });
  useEffect(() => {
    if (!(wait > 0) || wait === Number.POSITIVE_INFINITY) return undefined;
    // Effects run again where React mounts a component again, and that must not start the countdown anew.
    if (end.current.from !== from) end.current = { from, at: Date.now() + wait };
    const left = () => Math.max(end.current.at - Date.now(), 0);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tick = () => {
      setCount({ from, left: left() });
      schedule();
    };
    const schedule = () => {
      // At whole seconds, so that what is shown does not skip one.
      if (left() > 0) timer = setTimeout(tick, left() % second || second);
    };
    schedule();
    return () => clearTimeout(timer);
  }, [wait, from]);
  return count.from === from ? count.left : wait;
}
