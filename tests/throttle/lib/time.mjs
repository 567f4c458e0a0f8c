/** A clock and a timer that move only when told: no test waits for time to pass. */
export class FakeTime {
  now;
  #timers = new Set();
  /** Every wait that was asked for. */
  asked = [];

  constructor(now = 1_800_000_000_000) {
    this.now = now;
  }

  clock = () => this.now;

  timer = (callback, milliseconds) => {
    const entry = { at: this.now + milliseconds, callback };
    this.asked.push(milliseconds);
    this.#timers.add(entry);
    return () => this.#timers.delete(entry);
  };

  get timers() {
    return this.#timers.size;
  }

  /** Lets time pass; whatever is due rings at its time. */
  async pass(milliseconds) {
    await settled();
    const until = this.now + milliseconds;
    for (let next = this.#next(until); next; next = this.#next(until)) {
      this.now = next.at;
      this.#timers.delete(next);
      next.callback();
      await settled();
    }
    this.now = until;
    await settled();
  }

  /** Sets the clock, and leaves the timers to what they were set for. */
  jump(milliseconds) {
    for (const entry of this.#timers) entry.at += milliseconds;
    this.now += milliseconds;
  }

  /** Rings what is due now, and waits for nothing. */
  ring() {
    for (const entry of this.#timers) {
      if (entry.at > this.now) continue;
      this.#timers.delete(entry);
      entry.callback();
    }
  }

  #next(until) {
    return [...this.#timers].filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
  }
}

/** All promises that can settle now have. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));
