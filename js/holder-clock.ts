/**
 * Returns the clock of a machine that holds leases: whole milliseconds, never 0, that only grow. It advances by whichever
 * of two clocks advanced more, since one stands still while a machine sleeps and the other may be set back. A lease then
 * seems older than it is at the worst, and ends early.
 * @internal
 */
export function holderClock(): () => number {
  let [monotonic, wall, now] = [performance.now(), Date.now(), 1];
  return () => {
    const [monotonicNow, wallNow] = [performance.now(), Date.now()];
    now += Math.max(monotonicNow - monotonic, wallNow - wall, 0);
    [monotonic, wall] = [monotonicNow, wallNow];
    return Math.floor(now);
  };
}
