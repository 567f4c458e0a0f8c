/** Something that is due at a time. */
export interface Due {
  readonly at: number;
}

/** What is due, the soonest first. */
export class Heap<Item extends Due> {
  #items: Item[] = [];

  first(): Item | undefined {
    return this.#items[0];
  }

  push(item: Item): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((items[parent] as Item).at <= item.at) break;
      items[at] = items[parent] as Item;
      at = parent;
    }
    items[at] = item;
  }

  pop(): Item | undefined {
    const items = this.#items;
    const [first] = items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && (items[child + 1] as Item).at < (items[child] as Item).at) child += 1;
      if ((items[child] as Item).at >= last.at) break;
      items[at] = items[child] as Item;
      at = child;
    }
    items[at] = last;
    return first;
  }

  /** Takes out all that is due by then. */
  popUntil(time: number): Item[] {
    const due: Item[] = [];
    for (let item = this.first(); item !== undefined && item.at <= time; item = this.first()) {
      due.push(item);
      this.pop();
    }
    return due;
  }

  clear(): void {
    this.#items = [];
  }
}
