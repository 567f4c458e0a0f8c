import type { NewKeysSummary } from "../access-log/candidate.ts";

/** The least time for which an object keeps a row, in milliseconds. */
const leastKept = 600_000;

/** A key of which something is stored. */
interface KnownKey {
  /** When its states end. */
  ends: number;
  /** When the object looks whether they have ended, and if so deletes its row. */
  alarm: number;
  keptFor: number;
}

/** The keys that have a row, by their objects' alarms, and the addresses whose new keys were denied. */
export class NewKeys {
  readonly #known = new Map<number, KnownKey>();
  readonly #denied = new Map<number, number>();

  /** Returns whether nothing is stored of a key. */
  isNew(object: number, now: number): boolean {
    const key = this.#known.get(object);
    while (key !== undefined && key.alarm <= now) {
      if (key.ends <= key.alarm) {
        this.#known.delete(object);
        return true;
      }
      key.alarm = Math.max(key.ends, key.alarm + key.keptFor);
    }
    return key === undefined;
  }

  /** Notes that a key's row was written, with the end of its states. */
  store(object: number, ends: number, keptFor: number, now: number): void {
    const time = Math.max(leastKept, keptFor);
    if (this.isNew(object, now))
      this.#known.set(object, { ends, alarm: Math.max(ends, now + time), keptFor: time });
    else (this.#known.get(object) as KnownKey).ends = ends;
  }

  /** Counts a hit that was denied since its address brought too many new keys. */
  deny(address: number): void {
    this.#denied.set(address, (this.#denied.get(address) ?? 0) + 1);
  }

  /** Returns what was denied; `undefined` if nothing was. `most` is the most addresses that are listed. */
  summary(nameOf: (address: number) => string, most: number): NewKeysSummary | undefined {
    if (this.#denied.size === 0) return undefined;
    const addresses = [...this.#denied].sort(([, one], [, other]) => other - one);
    return {
      denied: addresses.reduce((sum, [, denied]) => sum + denied, 0),
      addresses: addresses.length,
      worst: addresses.slice(0, most).map(([address, denied]) => ({ address: nameOf(address), denied })),
    };
  }
}
