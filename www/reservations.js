/** The open reservations of one simulation. */
export class OpenReservations {
  #open = new Set();

  /** The sum of their amounts. */
  get amount() {
    return [...this.#open].reduce((sum, { amount }) => sum + amount, 0);
  }

  add(entry) {
    this.#open.add(entry);
  }

  delete(entry) {
    return this.#open.delete(entry);
  }

  has(entry) {
    return this.#open.has(entry);
  }

  /** Returns the earliest end; infinity if none is open. */
  get firstEnd() {
    let first = Number.POSITIVE_INFINITY;
    for (const { ends } of this.#open) first = Math.min(first, ends);
    return first;
  }

  /** Removes those that end at a time, and returns them. */
  takeEnding(time) {
    const ending = [...this.#open].filter(({ ends }) => ends === time);
    for (const entry of ending) this.#open.delete(entry);
    return ending;
  }
}
