/** Spans in rows. Spans of a row that touch are drawn as one. */
export class Spans {
  #draw;
  #open = new Map();

  constructor(draw) {
    this.#draw = draw;
  }

  /** Adds a span. The spans of a row must be added in the order of their left ends. */
  add(row, left, right, top) {
    const open = this.#open.get(row);
    if (open !== undefined && left <= open.right) {
      open.right = Math.max(open.right, right);
      return;
    }
    if (open !== undefined) this.#draw(open);
    this.#open.set(row, { left, right, top });
  }

  /** Draws the last span of each row. */
  end() {
    for (const open of this.#open.values()) this.#draw(open);
    this.#open.clear();
  }
}
