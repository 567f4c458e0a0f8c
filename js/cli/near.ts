/** Returns the name that is nearest to a misspelt word; undefined if none is near. */
export function nearest(word: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const name of names) {
    const distance = name.startsWith(word) && word.length > 2 ? 1 : distanceOf(word, name);
    if (distance >= least) continue;
    best = name;
    least = distance;
  }
  return best;
}

/** Returns the edit distance: how many letters are inserted, deleted, replaced or swapped with their neighbour. */
function distanceOf(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let at = 1; at <= one.length; at += 1) {
    const row = [at];
    const above = rows[at - 1] as number[];
    for (let column = 1; column <= other.length; column += 1) {
      const same = one[at - 1] === other[column - 1];
      const replaced = (above[column - 1] as number) + (same ? 0 : 1);
      const swapped =
        at > 1 && column > 1 && one[at - 1] === other[column - 2] && one[at - 2] === other[column - 1]
          ? ((rows[at - 2] as number[])[column - 2] as number) + 1
          : replaced;
      row.push(Math.min((above[column] as number) + 1, (row[column - 1] as number) + 1, replaced, swapped));
    }
    rows.push(row);
  }
  return (rows[one.length] as number[])[other.length] as number;
}
