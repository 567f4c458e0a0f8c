import { Denials } from "./denials.ts";
import { bySeries, History, type SeriesName, type StoredHistory, series } from "./history.ts";
import { type Denial, idOf, type Report, type Source, type TopKey } from "./report.ts";
import { type StoredTop, TopKeys } from "./top-keys.ts";

/** The most sources whose counts are kept apart; those of the others are counted together. */
const mostSources = 200;

/** How many top keys and denials the page shows. */
const shown = 50;

/** The source of what is counted together. */
const others: Source = { via: "other", rule: "", policies: [], mode: "enforce" };

/** What the page shows of all keys. */
export interface View {
  readonly now: number;
  /** The hour of the oldest count; `null` if there is none. */
  readonly since: number | null;
  readonly start: Readonly<Record<SeriesName, number>>;
  readonly step: Readonly<Record<SeriesName, number>>;
  readonly rules: readonly (Source & ReturnType<History["plotted"]>)[];
  readonly top: readonly TopKey[];
  readonly denials: readonly Denial[];
}

/** A book as it is stored. */
interface StoredBook {
  readonly sources: readonly (readonly [Source, StoredHistory])[];
  readonly top: StoredTop;
  readonly denials: readonly Denial[];
}

/** All that is kept of the reports: counts by source, the most denied keys, and denials by key. */
export class Book {
  readonly #sources = new Map<string, { readonly source: Source; readonly history: History }>();
  readonly #top: TopKeys;
  readonly #denials: Denials;

  constructor(json?: string) {
    const { sources, top, denials } = (json === undefined ? {} : JSON.parse(json)) as Partial<StoredBook>;
    for (const [source, history] of sources ?? [])
      this.#sources.set(idOf(source), { source, history: new History(history) });
    this.#top = new TopKeys(top);
    this.#denials = new Denials(denials);
  }

  add({ counts, top, denials }: Report, now: number): void {
    for (const { via, rule, policies, mode, ...own } of counts)
      this.#historyOf({ via, rule, policies, mode }).add(own, now);
    this.#top.add(top, now);
    this.#denials.add(denials, now);
  }

  /** Returns what the page shows of all keys. */
  view(now: number): View {
    const rules = this.#live(now).map(({ source, plotted }) => ({ ...source, ...plotted }));
    const start = bySeries((name) => {
      const { step, length } = series[name];
      return (Math.floor(now / step) - length + 1) * step;
    });
    const oldest = rules.flatMap(({ hours }) => Object.values(hours).map(firstCount));
    return {
      now,
      since: oldest.length === 0 ? null : start.hours + Math.min(...oldest) * series.hours.step,
      start,
      step: bySeries((name) => series[name].step),
      rules: rules.toSorted((one, other) => weight(other) - weight(one)),
      top: this.#top.top(shown, now),
      denials: this.#denials.last(shown, now),
    };
  }

  /** Returns the denials of an object's key. */
  denialsOf(object: string, now: number): readonly Denial[] {
    return this.#denials.of(object, now);
  }

  /** Returns the book as JSON; `undefined` if there is nothing in it of the last day. */
  stored(now: number): string | undefined {
    const live = this.#live(now);
    const denials = this.#denials.stored(now);
    if (live.length === 0 && denials.length === 0) return undefined;
    const sources = live.map(({ source, history }) => [source, history.stored()] as const);
    return JSON.stringify({ sources, top: this.#top.stored(now), denials } satisfies StoredBook);
  }

  #historyOf(source: Source): History {
    const id = idOf(source);
    const known = this.#sources.get(id);
    if (known !== undefined) return known.history;
    if (this.#sources.size >= mostSources && source !== others) return this.#historyOf(others);
    const history = new History();
    this.#sources.set(id, { source, history });
    return history;
  }

  /** Returns the sources that have counts, and forgets the others. */
  #live(now: number) {
    return [...this.#sources].flatMap(([id, { source, history }]) => {
      const plotted = history.plotted(now);
      const isLive = Object.values(plotted.hours).some((counts) => counts.some((count) => count > 0));
      if (!isLive) this.#sources.delete(id);
      return isLive ? [{ source, history, plotted }] : [];
    });
  }
}

/** Returns the place of the first count that is not 0. */
const firstCount = (counts: readonly number[]) => {
  const at = counts.findIndex((count) => count > 0);
  return at < 0 ? counts.length : at;
};

const sum = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

/** Sources are ordered by the denials of the last hour, then by the decisions of the last day. */
const weight = ({ minutes, hours }: ReturnType<History["plotted"]>) =>
  sum(minutes.denied) + sum(hours.denied) / 1e6 + sum(hours.allowed) / 1e12;
