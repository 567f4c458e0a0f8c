import { generators } from "./generators.js";

/** The hits that are to come, one after the other. */
export class Traffic {
  #times;
  #next;

  constructor(state, edges) {
    this.#times = generators[state.traffic](state, edges);
    this.#next = this.#times.next();
  }

  /** The times up to and with `until` that have not been taken yet. */
  *take(until) {
    while (!this.#next.done && this.#next.value <= until) {
      yield this.#next.value;
      this.#next = this.#times.next();
    }
  }
}
