/** One listener for each signal, however many wait under it: a platform goes through all of them for each new one. */
export class Signals<Item> {
  readonly #waiting = new Map<AbortSignal, Set<Item>>();
  readonly #aborted: (items: readonly Item[], reason: unknown) => void;

  constructor(aborted: (items: readonly Item[], reason: unknown) => void) {
    this.#aborted = aborted;
  }

  /** Notes who waits under a signal, and answers how to take it back. */
  add(signal: AbortSignal, item: Item): () => void {
    const items = this.#waiting.get(signal) ?? this.#listen(signal);
    items.add(item);
    return () => {
      items.delete(item);
      if (items.size > 0 || this.#waiting.get(signal) !== items) return;
      this.#waiting.delete(signal);
      try {
        signal.removeEventListener("abort", this.#onAbort);
      } catch {
        // A signal of one caller must not keep others from their turn.
      }
    };
  }

  #listen(signal: AbortSignal): Set<Item> {
    const items = new Set<Item>();
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#waiting.set(signal, items);
    return items;
  }

  readonly #onAbort = ({ target }: { target: unknown }): void => {
    const signal = target as AbortSignal;
    const items = [...(this.#waiting.get(signal) ?? [])];
    this.#waiting.delete(signal);
    this.#aborted(items, signal.reason);
  };
}
