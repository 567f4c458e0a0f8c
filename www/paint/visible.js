/** Returns the position of the first item at or after a time, in a list ordered by time. */
export function firstFrom(items, time) {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].at < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the items between two times, and one on each side, so that lines go on past the edges. */
export const around = (items, from, to) =>
  items.slice(Math.max(firstFrom(items, from) - 1, 0), firstFrom(items, to) + 1);

/** Returns the items between two times. */
export const within = (items, from, to) => items.slice(firstFrom(items, from), firstFrom(items, to + 1));
