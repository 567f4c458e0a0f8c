import { bold, write } from "./words.js";

/** The room that a cross needs beside its own width so that it can be told from the next. */
const room = 2;

/**
 * Groups the positions of denied hits, in order, into bursts: those whose crosses, twice `half` wide, would touch in one
 * row. Returns how many rows a burst needs; it is crowded if that is more than `most`.
 */
export function burstsOf(positions, half, most) {
  const wide = 2 * half + room;
  const bursts = [];
  for (const [index, left] of positions.entries()) {
    if (index === 0 || left - positions[index - 1] >= wide) bursts.push({ first: index, lefts: [] });
    bursts.at(-1).lefts.push(left);
  }
  return bursts.map(({ first, lefts }) => {
    const rows = rowsFor(lefts, wide, most);
    return { first, count: lefts.length, left: lefts[0], right: lefts.at(-1), rows, isCrowded: rows > most };
  });
}

/** Returns the fewest rows, taken in turn, in which no two touch; one more than `most` if there are none. */
function rowsFor(lefts, wide, most) {
  let rows = 1;
  while (rows <= most && lefts.some((left, index) => index >= rows && left - lefts[index - rows] < wide))
    rows += 1;
  return rows;
}

/** Returns the row of each denied hit. Those of a crowded burst share the first, where they become one bar. */
export const rowsOf = (bursts) =>
  bursts.flatMap(({ count, rows, isCrowded }) =>
    Array.from({ length: count }, (_, index) => (isCrowded ? 0 : index % rows)),
  );

/** The gap between two numbers. */
const apart = 4;

/** Writes below each crowded burst how many hits it has. */
export function paintCounts(brush, bursts, top) {
  const { context, colours, box } = brush;
  context.font = bold;
  context.textAlign = "left";
  context.textBaseline = "middle";
  let free = box.left;
  for (const { count, left, right, isCrowded } of bursts) {
    if (!isCrowded) continue;
    const { width } = context.measureText(count);
    const start = Math.max((left + right - width) / 2, free);
    write(brush, count, start, top, colours.denied);
    free = start + width + apart;
  }
}
