/** One listener for each signal, however many items wait for it: a platform walks through all listeners to add one. */
export class Signals<Item> {
  readonly #waiting = new Map<AbortSignal, Set<Item>>();
  readonly #aborted: (items: readonly Item[], reason: unknown) => void;

  constructor(aborted: (items: readonly Item[], reason: unknown) => void) {
    this.#aborted = aborted;
  }

  /** Adds an item that waits for a signal, and returns a function that removes it. */
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
        // The signal of one caller must not stop the others.
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
