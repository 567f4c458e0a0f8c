/** How many keys are remembered. A reservation that is forgotten is charged at its end. */
const most = 10_000;

/**
 * Reservations that were used in full, to be settled with the next message to their key: until then, or until their end,
 * they count all the same.
 */
export class Unsettled {
  #ids = new Map<string, string[]>();

  /** Adds a reservation of a key. */
  add(key: string, id: string): void {
    const ids = this.#ids.get(key);
    if (ids !== undefined) {
      ids.push(id);
      return;
    }
    if (this.#ids.size >= most) this.#ids.delete(this.#ids.keys().next().value as string);
    this.#ids.set(key, [id]);
  }

  /** Takes out the reservations of a key. */
  take(key: string): readonly string[] {
    const ids = this.#ids.get(key);
    if (ids === undefined) return [];
    this.#ids.delete(key);
    return ids;
  }
}
