import { SpaceSaving } from "../../metrics/space-saving.ts";
import type { TopKey } from "./report.ts";

/** The top keys of ten minutes each, for an hour. */
const step = 600_000;
const length = 6;

/** The keys that are counted in ten minutes: no count of the hour is off by more than a hundredth of its denials. */
const most = 100;

/** The keys of ten minutes, as they are stored. */
export type StoredTop = readonly (readonly [number: number, keys: readonly TopKey[]])[];

/** The keys that were denied most in the last hour. */
export class TopKeys {
  /** The sketches by their ten minutes since the epoch, the oldest first. */
  readonly #sketches = new Map<number, SpaceSaving>();
  /** The objects of keys. */
  readonly #objects = new Map<string, string>();

  constructor(stored: StoredTop = []) {
    for (const [number, keys] of stored) this.#addTo(number, keys);
  }

  add(keys: readonly TopKey[], now: number): void {
    if (keys.length > 0) this.#addTo(Math.floor(now / step), keys);
    this.#forget(now);
  }

  /** Returns the most denied keys. */
  top(count: number, now: number): TopKey[] {
    this.#forget(now);
    const all = new Map<string, { denied: number; error: number }>();
    for (const { key, denied, error } of [...this.#sketches.values()].flatMap((sketch) => this.#in(sketch))) {
      const known = all.get(key) ?? { denied: 0, error: 0 };
      all.set(key, { denied: known.denied + denied, error: known.error + error });
    }
    return [...all]
      .map(([key, counts]) => ({ key, object: this.#objects.get(key) ?? "", ...counts }))
      .toSorted((one, other) => other.denied - one.denied || (one.key < other.key ? -1 : 1))
      .slice(0, count);
  }

  stored(now: number): StoredTop {
    this.#forget(now);
    return [...this.#sketches].map(([number, sketch]) => [number, this.#in(sketch)]);
  }

  #addTo(number: number, keys: readonly TopKey[]): void {
    let sketch = this.#sketches.get(number);
    if (sketch === undefined) {
      sketch = new SpaceSaving(most);
      this.#sketches.set(number, sketch);
    }
    for (const { key, object, denied, error } of keys) {
      sketch.add(key, denied, error);
      this.#objects.set(key, object);
    }
  }

  #in(sketch: SpaceSaving): TopKey[] {
    return sketch
      .top(most)
      .map(({ key, count, error }) => ({ key, object: this.#objects.get(key) ?? "", denied: count, error }));
  }

  #forget(now: number): void {
    const oldest = Math.floor(now / step) - length + 1;
    for (const number of this.#sketches.keys()) if (number < oldest) this.#sketches.delete(number);
    if (this.#objects.size <= 2 * most * length) return;
    const kept = new Set(
      [...this.#sketches.values()].flatMap((sketch) => sketch.top(most)).map(({ key }) => key),
    );
    for (const key of this.#objects.keys()) if (!kept.has(key)) this.#objects.delete(key);
  }
}
