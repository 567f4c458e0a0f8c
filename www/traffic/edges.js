import { RateLimiter } from "tollgate";
import { origin } from "../state.js";

/** The edges of the clock's windows, as the package computes them. */
export class Edges {
  #now = origin;
  #limiter;
  #known = [];

  constructor(scale) {
    this.#limiter = new RateLimiter({ algorithm: "fix_window", limit: 1, scale }, { clock: () => this.#now });
  }

  /** Returns the edge of a number, counted from 0. */
  at(number) {
    while (this.#known.length <= number) {
      this.#limiter.inc("edge");
      this.#now = this.#limiter.expiresAt("edge");
      this.#known.push(this.#now - origin);
    }
    return this.#known[number];
  }

  between(from, to) {
    const found = [];
    for (let number = 0; this.at(number) <= to; number += 1) {
      if (this.at(number) >= from) found.push(this.at(number));
    }
    return found;
  }
}
