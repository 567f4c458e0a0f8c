/** The largest change of the difference between two clocks that their resolution can cause, in milliseconds. */
const tolerance = 2;

/**
 * Returns the clock of a machine that holds leases: whole milliseconds, never 0, that only grow. It advances by whichever
 * of two clocks advanced more, since one stands still while a machine sleeps and the other may be set back. A lease then
 * seems older than it is at the worst, and ends early.
 * @internal
 */
export function holderClock(): () => number {
  const start = performance.now();
  let difference = Date.now() - start;
  /** How far the wall clock got ahead of the other one, and 1 so that no time is 0. */
  let ahead = 1;
  return () => {
    const monotonic = performance.now();
    const change = Date.now() - monotonic - difference;
    // Smaller changes go both ways. Counted at every reading, the forward ones would make this clock run fast.
    if (Math.abs(change) >= tolerance) {
      ahead += Math.max(change, 0);
      difference += change;
    }
    return Math.floor(monotonic - start + ahead);
  };
}
