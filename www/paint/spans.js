/** Spans along rows. Those of a row that touch are drawn as one, however many there are. */
export class Spans {
  #draw;
  #open = new Map();

  constructor(draw) {
    this.#draw = draw;
  }

  /** Adds a span; those of a row come in the order of their beginnings. */
  add(row, left, right, top) {
    const open = this.#open.get(row);
    if (open !== undefined && left <= open.right) {
      open.right = Math.max(open.right, right);
      return;
    }
    if (open !== undefined) this.#draw(open);
    this.#open.set(row, { left, right, top });
  }

  /** Draws what is still open. */
  end() {
    for (const open of this.#open.values()) this.#draw(open);
    this.#open.clear();
  }
}
