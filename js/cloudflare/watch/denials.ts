import type { Denial } from "./report.ts";

/** How long denials are kept, in milliseconds. */
export const day = 86_400_000;

/** The most denials of a key, and of all keys. */
const mostOfKey = 20;
const mostOfAll = 4_000;

/** The longest time between two denials that are shown as one stretch, and the longest stretch, in milliseconds. */
const pause = 60_000;
const longest = 600_000;

/** The last denials of the keys that were denied last, for a day. */
export class Denials {
  /** The denials of each key, by its object, the newest first. The key that was denied last is the last one. */
  readonly #keys = new Map<string, Denial[]>();
  #size = 0;

  constructor(stored: readonly Denial[] = []) {
    for (const denial of stored) this.#add(denial);
  }

  add(denials: readonly Denial[], now: number): void {
    for (const denial of denials) this.#add(denial);
    this.#forget(now);
  }

  /** Returns the denials of an object's key, the newest first. */
  of(object: string, now: number): readonly Denial[] {
    this.#forget(now);
    return this.#keys.get(object) ?? [];
  }

  /** Returns the last denial of each key, the newest first. */
  last(count: number, now: number): Denial[] {
    this.#forget(now);
    return [...this.#keys.values()]
      .flatMap(([newest]) => newest ?? [])
      .toSorted((one, other) => other.at - one.at)
      .slice(0, count);
  }

  /** Returns all denials, the oldest first. */
  stored(now: number): readonly Denial[] {
    this.#forget(now);
    return [...this.#keys.values()].flatMap((denials) => denials.toReversed());
  }

  #add(denial: Denial): void {
    const { object } = denial;
    const denials = this.#keys.get(object) ?? [];
    const [newest] = denials;
    if (newest !== undefined && isSameStretch(newest, denial)) {
      const { times, first } = newest;
      denials[0] = { ...denial, times: times + denial.times, first: Math.min(first, denial.first) };
    } else {
      denials.unshift(denial);
      this.#size += 1;
    }
    this.#size -= denials.splice(mostOfKey).length;
    this.#keys.delete(object);
    this.#keys.set(object, denials);
  }

  /** Forgets the denials that are older than a day, and the keys that were denied longest ago, if there are too many. */
  #forget(now: number): void {
    for (const [object, denials] of this.#keys) {
      const kept = this.#size > mostOfAll ? [] : denials.filter(({ at }) => at > now - day);
      if (kept.length === denials.length) continue;
      this.#size += kept.length - denials.length;
      if (kept.length === 0) this.#keys.delete(object);
      else this.#keys.set(object, kept);
    }
  }
}

/** Returns whether two denials are of one source, for the same reason, and one soon after the other. */
const isSameStretch = (one: Denial, other: Denial): boolean =>
  one.rule === other.rule &&
  one.via === other.via &&
  one.mode === other.mode &&
  one.banned === other.banned &&
  one.policies.join() === other.policies.join() &&
  Math.abs(other.first - one.at) <= pause &&
  other.at - one.first <= longest;
