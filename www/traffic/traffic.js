import { generators } from "./generators.js";

/** The times of future hits, in order. */
export class Traffic {
  #times;
  #next;

  constructor(state, edges) {
    this.#times = generators[state.traffic](state, edges);
    this.#next = this.#times.next();
  }

  /** Yields the times up to and including `until` that were not yielded yet. */
  *take(until) {
    while (!this.#next.done && this.#next.value <= until) {
      yield this.#next.value;
      this.#next = this.#times.next();
    }
  }
}
