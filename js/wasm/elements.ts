/** Copies at most `most` elements of an array. Its length is read once, and each element once, holes included. */
export function elements(list: readonly unknown[], most = Number.POSITIVE_INFINITY): unknown[] {
  const copy: unknown[] = [];
  const length = Math.min(list.length, most);
  for (let at = 0; at < length; at++) copy.push(list[at]);
  return copy;
}
