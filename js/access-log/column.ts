/** An array of numbers, 0 by default, that grows as needed. */
export class Column {
  #numbers = new Float64Array(1_024);

  /** How many positions there is room for. */
  get length(): number {
    return this.#numbers.length;
  }

  get(at: number): number {
    return this.#numbers[at] ?? 0;
  }

  set(at: number, number: number): void {
    this.#reach(at);
    this.#numbers[at] = number;
  }

  add(at: number, amount: number): void {
    this.#reach(at);
    this.#numbers[at] = (this.#numbers[at] as number) + amount;
  }

  /** Raises the number at a position to `to`, unless it is greater. */
  raise(at: number, to: number): void {
    this.#reach(at);
    if (to > (this.#numbers[at] as number)) this.#numbers[at] = to;
  }

  #reach(at: number): void {
    if (at < this.#numbers.length) return;
    const grown = new Float64Array(Math.max(2 * this.#numbers.length, at + 1));
    grown.set(this.#numbers);
    this.#numbers = grown;
  }
}
