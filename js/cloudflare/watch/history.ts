import { type Counts, type Result, results } from "./report.ts";
import { Ring, type StoredRing } from "./ring.ts";

/** The series of counts: the last minute, hour and day. */
export const series = {
  seconds: { step: 5_000, length: 12 },
  minutes: { step: 60_000, length: 60 },
  hours: { step: 3_600_000, length: 24 },
} as const;

export type SeriesName = keyof typeof series;

const names = Object.keys(series) as SeriesName[];

/** The counts of one series, by result. */
export type Plotted = Readonly<Record<Result, readonly number[]>>;

/** A history as it is stored: the rings of each result. */
export type StoredHistory = readonly (readonly StoredRing[])[];

/** Returns a record of a value for each series. */
export const bySeries = <Value>(value: (name: SeriesName) => Value): Record<SeriesName, Value> =>
  Object.fromEntries(names.map((name) => [name, value(name)])) as Record<SeriesName, Value>;

/** Counts by result, in all series. */
export class History {
  readonly #rings: Readonly<Record<Result, readonly Ring[]>>;

  constructor(stored?: StoredHistory) {
    const rings = (result: number) =>
      names.map((name, at) => new Ring(series[name].step, series[name].length, stored?.[result]?.[at]));
    this.#rings = { allowed: rings(0), denied: rings(1), errors: rings(2) };
  }

  add(counts: Counts, now: number): void {
    for (const result of results) {
      if (counts[result] > 0) for (const ring of this.#rings[result]) ring.add(counts[result], now);
    }
  }

  /** Returns the counts of each series. */
  plotted(now: number): Record<SeriesName, Plotted> {
    return bySeries((name) => {
      const at = names.indexOf(name);
      const counts = (result: Result) => (this.#rings[result][at] as Ring).counts(now);
      return { allowed: counts("allowed"), denied: counts("denied"), errors: counts("errors") };
    });
  }

  stored(): StoredHistory {
    return results.map((result) => this.#rings[result].map((ring) => ring.stored()));
  }
}
