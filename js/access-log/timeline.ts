const second = 1_000;

/** The lengths of steps, each a multiple of the one before, so that steps can be joined. After the last they double. */
const steps = [1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map(
  (each) => each * second,
);

/** The most steps; more are joined. */
const mostSteps = 1_440;

/** How many hits were allowed and denied in each step of time. */
export interface TimelineSummary {
  /** When the first step starts, in milliseconds since the epoch. */
  readonly start: number;
  /** How long a step is, in milliseconds. */
  readonly step: number;
  readonly allowed: readonly number[];
  readonly denied: readonly number[];
}

/** Counts hits in steps of time, which become longer with the log. Times must not run back. */
export class Timeline {
  #step = second;
  #first = 0;
  #allowed: number[] = [];
  #denied: number[] = [];

  add(time: number, allowed: boolean): void {
    let at = this.#position(time);
    while (at >= mostSteps) {
      this.#join(longer(this.#step));
      at = this.#position(time);
    }
    while (this.#allowed.length <= at) {
      this.#allowed.push(0);
      this.#denied.push(0);
    }
    const counts = allowed ? this.#allowed : this.#denied;
    counts[at] = (counts[at] as number) + 1;
  }

  /** Returns the timeline in at most `most` steps. */
  summary(most: number): TimelineSummary {
    const copy = new Timeline();
    copy.#step = this.#step;
    copy.#first = this.#first;
    copy.#allowed = this.#allowed;
    copy.#denied = this.#denied;
    while (copy.#allowed.length > most) copy.#join(longer(copy.#step));
    return {
      start: copy.#first * copy.#step,
      step: copy.#step,
      allowed: copy.#allowed,
      denied: copy.#denied,
    };
  }

  #position(time: number): number {
    const number = Math.floor(time / this.#step);
    if (this.#allowed.length === 0) this.#first = number;
    return number - this.#first;
  }

  #join(step: number): void {
    const first = Math.floor((this.#first * this.#step) / step);
    const joined = (counts: readonly number[]) => {
      const sums: number[] = [];
      for (const [at, count] of counts.entries()) {
        const to = Math.floor(((this.#first + at) * this.#step) / step) - first;
        while (sums.length <= to) sums.push(0);
        sums[to] = (sums[to] as number) + count;
      }
      return sums;
    };
    this.#allowed = joined(this.#allowed);
    this.#denied = joined(this.#denied);
    this.#first = first;
    this.#step = step;
  }
}

const longer = (step: number): number => steps.find((each) => each > step) ?? 2 * step;
