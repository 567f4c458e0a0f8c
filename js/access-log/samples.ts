import type { LineDetails } from "./entries.ts";

/** The most denied hits of a key that are looked at, and the most keys. */
const mostLines = 1_000;
const mostKeys = 20_000;

/** The most different texts of a field that are counted for a key. */
const mostTexts = 50;

/** How many texts of a field a summary has. */
const shown = 3;

/** The values of a field in the denied lines of a key. */
export interface FieldSample {
  /** The texts that come most often, and how often. */
  readonly most: readonly { readonly text: string; readonly times: number }[];
  /** How many different texts there are; at least as many if `isMore` is set. */
  readonly different: number;
  readonly isMore?: boolean;
}

/** Samples of the first denied lines of a key. A field that no line has is left out. */
export interface SampleSummary {
  /** How many denied lines were looked at. */
  readonly lines: number;
  readonly paths?: FieldSample;
  readonly agents?: FieldSample;
  readonly users?: FieldSample;
}

/** Counts the texts of one field. */
class Texts {
  readonly #times = new Map<string, number>();
  #isMore = false;

  add(text: string | undefined): void {
    if (text === undefined) return;
    const times = this.#times.get(text);
    if (times !== undefined) this.#times.set(text, times + 1);
    else if (this.#times.size >= mostTexts) this.#isMore = true;
    // A copy of its start, since a slice keeps the whole text alive that it was cut from.
    else this.#times.set(JSON.parse(JSON.stringify(text.slice(0, 200))), 1);
  }

  summary(): FieldSample | undefined {
    if (this.#times.size === 0) return undefined;
    const most = [...this.#times]
      .sort(([, one], [, other]) => other - one)
      .slice(0, shown)
      .map(([text, times]) => ({ text, times }));
    return { most, different: this.#times.size, ...(this.#isMore && { isMore: true }) };
  }
}

class KeySample {
  lines = 0;
  readonly paths = new Texts();
  readonly agents = new Texts();
  readonly users = new Texts();
}

/** Looks at the denied lines of keys, at a bounded cost. */
export class Samples {
  readonly #keys = new Map<number, KeySample>();

  /** Looks at a denied line of a key. `details` is called only if the line is looked at. */
  add(key: number, details: () => LineDetails): void {
    let sample = this.#keys.get(key);
    if (sample === undefined) {
      if (this.#keys.size >= mostKeys) this.#halve();
      sample = new KeySample();
      this.#keys.set(key, sample);
    }
    if (sample.lines >= mostLines) return;
    const { path, agent, user } = details();
    sample.lines += 1;
    sample.paths.add(path);
    sample.agents.add(agent);
    sample.users.add(user);
  }

  /** Returns what is known of a key; `undefined` if nothing is. */
  summaryOf(key: number): SampleSummary | undefined {
    const sample = this.#keys.get(key);
    if (sample === undefined) return undefined;
    const [paths, agents, users] = [sample.paths.summary(), sample.agents.summary(), sample.users.summary()];
    if (paths === undefined && agents === undefined && users === undefined) return undefined;
    return {
      lines: sample.lines,
      ...(paths && { paths }),
      ...(agents && { agents }),
      ...(users && { users }),
    };
  }

  /** Forgets the keys that were denied least. */
  #halve(): void {
    const byLines = [...this.#keys].sort(([, one], [, other]) => one.lines - other.lines);
    for (const [key] of byLines.slice(0, mostKeys / 2)) this.#keys.delete(key);
  }
}
