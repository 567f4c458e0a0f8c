/** An item that stores its index in a heap, so that it can be removed from anywhere; -1 outside of a heap. */
export interface Placed {
  place: number;
}

/** A binary heap: the item that goes before all others is first. Adding and removing take logarithmic time. */
export class Heap<Item extends Placed> {
  readonly #items: Item[] = [];
  readonly #goesBefore: (one: Item, other: Item) => boolean;

  constructor(goesBefore: (one: Item, other: Item) => boolean) {
    this.#goesBefore = goesBefore;
  }

  first(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  /** Removes an item, wherever it is; one that is not in the heap is left alone. */
  remove(item: Item): void {
    const items = this.#items;
    let { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = items.pop() as Item;
    if (last === item) return;
    // The gap sinks to the bottom, where the last item fills it: that item belongs near there, so it rises little.
    for (let child = 2 * place + 1; child < items.length; child = 2 * place + 1) {
      const [left, right] = [items[child] as Item, items[child + 1]];
      const isRight = right !== undefined && this.#goesBefore(right, left);
      this.#put(isRight ? right : left, place);
      place = isRight ? child + 1 : child;
    }
    this.#rise(last, place);
  }

  #rise(item: Item, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#items[above] as Item;
      if (!this.#goesBefore(item, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
  }

  #put(item: Item, place: number): void {
    this.#items[place] = item;
    item.place = place;
  }
}
