import { Column } from "./column.ts";
import type { LineDetails } from "./entries.ts";
import { type SampleSummary, Samples } from "./samples.ts";
import { Timeline, type TimelineSummary } from "./timeline.ts";

/** A key that was denied. */
export interface DeniedKey {
  readonly key: string;
  readonly hits: number;
  readonly denied: number;
  /** The longest time after which a denied hit would have been allowed, in milliseconds; `Infinity` for never. */
  readonly longestWait: number;
  /** How many of its hits a ban denied; left out if none. */
  readonly banned?: number;
  /** The paths, agents and users of its denied lines. */
  readonly samples?: SampleSummary;
}

/** The result of a policy. */
export interface TallySummary {
  readonly hits: number;
  readonly allowed: number;
  readonly denied: number;
  readonly keys: number;
  /** How many keys were denied at least once. */
  readonly keysDenied: number;
  /** How many keys were banned at least once; left out if none. */
  readonly keysBanned?: number;
  /** How many keys were denied, as a share of all keys, from 0 to 1. */
  readonly shareDenied: number;
  /** The keys that were denied most often. */
  readonly worst: readonly DeniedKey[];
  readonly timeline: TimelineSummary;
}

const samplesOf = (samples: SampleSummary | undefined) => (samples === undefined ? {} : { samples });

/** The size of a summary. */
export interface SummaryOptions {
  /** How many of the keys that were denied most it has. */
  readonly worst: number;
  /** The most steps of the timeline. */
  readonly steps: number;
}

/** Counts decisions: all of them, by key and by time. */
export class Tally {
  #allowed = 0;
  #denied = 0;
  #keys = 0;
  readonly #hitsOf = new Column();
  readonly #deniedOf = new Column();
  readonly #waitOf = new Column();
  readonly #bannedOf = new Column();
  readonly #timeline = new Timeline();
  readonly #samples = new Samples();

  /** Looks at the line of a hit that was denied. */
  sample(key: number, details: () => LineDetails): void {
    this.#samples.add(key, details);
  }

  /** Counts the decision of a key's hit. */
  add(time: number, key: number, allowed: boolean, wait: number, isBanned = false): void {
    this.addKey(key, allowed, wait, isBanned);
    this.addHit(time, allowed);
  }

  /** Returns how many hits of a key there were. */
  hitsOf(key: number): number {
    return this.#hitsOf.get(key);
  }

  /** Returns how many hits of a key were denied. */
  deniedOf(key: number): number {
    return this.#deniedOf.get(key);
  }

  addHit(time: number, allowed: boolean): void {
    if (allowed) this.#allowed += 1;
    else this.#denied += 1;
    this.#timeline.add(time, allowed);
  }

  addKey(key: number, allowed: boolean, wait: number, isBanned = false): void {
    this.#hitsOf.add(key, 1);
    this.#keys = Math.max(this.#keys, key + 1);
    if (allowed) return;
    this.#deniedOf.add(key, 1);
    this.#waitOf.raise(key, wait);
    if (isBanned) this.#bannedOf.add(key, 1);
  }

  summary(nameOf: (key: number) => string, { worst, steps }: SummaryOptions): TallySummary {
    let [keys, keysDenied, keysBanned] = [0, 0, 0];
    const denied: number[] = [];
    for (let key = 0; key < this.#keys; key += 1) {
      if (this.#hitsOf.get(key) > 0) keys += 1;
      if (this.#deniedOf.get(key) === 0) continue;
      keysDenied += 1;
      if (this.#bannedOf.get(key) > 0) keysBanned += 1;
      this.#insert(denied, key, worst);
    }
    return {
      hits: this.#allowed + this.#denied,
      allowed: this.#allowed,
      denied: this.#denied,
      keys,
      keysDenied,
      ...(keysBanned > 0 ? { keysBanned } : {}),
      shareDenied: keys === 0 ? 0 : keysDenied / keys,
      worst: denied.map((key) => ({
        key: nameOf(key),
        hits: this.#hitsOf.get(key),
        denied: this.#deniedOf.get(key),
        longestWait: this.#waitOf.get(key),
        ...(this.#bannedOf.get(key) > 0 ? { banned: this.#bannedOf.get(key) } : {}),
        ...samplesOf(this.#samples.summaryOf(key)),
      })),
      timeline: this.#timeline.summary(steps),
    };
  }

  /** Inserts a key into the list of those that were denied most, in order. */
  #insert(denied: number[], key: number, most: number): void {
    const count = this.#deniedOf.get(key);
    if (denied.length === most && count <= this.#deniedOf.get(denied.at(-1) ?? -1)) return;
    let at = denied.length;
    while (at > 0 && this.#deniedOf.get(denied[at - 1] as number) < count) at -= 1;
    denied.splice(at, 0, key);
    if (denied.length > most) denied.pop();
  }
}
