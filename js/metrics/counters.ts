import { heading, type Labels, labelValue, sample } from "./exposition.ts";

interface Counted {
  readonly labels: Labels;
  count: number;
}

/** A counter with labels. Past its most series, those that are new are counted together. */
export class Counters {
  readonly #name: string;
  readonly #help: string;
  readonly #most: number;
  readonly #series = new Map<string, Counted>();

  constructor(name: string, help: string, most: number) {
    this.#name = name;
    this.#help = help;
    this.#most = most;
  }

  /** Counts once under these labels; past the most series under `rest`, which has few values. */
  add(labels: Labels, rest: Labels): void {
    let series = this.#series.get(Object.values(labels).join("\0"));
    series ??= this.#series.size < this.#most ? this.#new(labels) : this.#get(rest);
    series.count += 1;
  }

  /** Returns the text of the counter. */
  text(): string {
    let text = heading(this.#name, "counter", this.#help);
    for (const { labels, count } of this.#series.values())
      text += sample(`${this.#name}_total`, labels, count);
    return text;
  }

  #get(labels: Labels): Counted {
    return this.#series.get(Object.values(labels).join("\0")) ?? this.#new(labels);
  }

  #new(labels: Labels): Counted {
    const cut = Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, labelValue(value)]));
    const id = Object.values(cut).join("\0");
    // Two long values may be the same when they are cut.
    const series = this.#series.get(id) ?? { labels: cut, count: 0 };
    this.#series.set(id, series);
    return series;
  }
}

/** Durations in seconds, by a label of few values. */
export class Histograms {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, { readonly counts: number[]; sum: number }>();

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#help = help;
    this.#bounds = bounds;
  }

  /** Adds a duration under the label `limiter`. */
  add(limiter: string, seconds: number): void {
    let series = this.#series.get(limiter);
    if (series === undefined) {
      series = { counts: Array(this.#bounds.length + 1).fill(0), sum: 0 };
      this.#series.set(limiter, series);
    }
    const at = this.#bounds.findIndex((bound) => seconds <= bound);
    const place = at < 0 ? this.#bounds.length : at;
    series.counts[place] = (series.counts[place] as number) + 1;
    series.sum += seconds;
  }

  /** Returns the text of the histogram. */
  text(): string {
    let text = heading(this.#name, "histogram", this.#help);
    for (const [limiter, { counts, sum }] of this.#series) {
      let total = 0;
      for (const [at, count] of counts.entries()) {
        total += count;
        const bound = this.#bounds[at];
        text += sample(
          `${this.#name}_bucket`,
          { limiter, le: bound === undefined ? "+Inf" : `${bound}` },
          total,
        );
      }
      text += sample(`${this.#name}_count`, { limiter }, total);
      text += sample(`${this.#name}_sum`, { limiter }, sum);
    }
    return text;
  }
}
