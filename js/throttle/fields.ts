/** An item of a structured field: a quoted name, and its parameters that are whole numbers. */
export interface Item {
  readonly name: string;
  readonly numbers: ReadonlyMap<string, number>;
}

const item =
  /\s*"((?:[^"\\]|\\["\\])*)"((?:\s*;\s*[a-z*][a-z0-9_\-.*]*(?:=(?:"(?:[^"\\]|\\["\\])*"|:[A-Za-z0-9+/=]*:|[^\s;,"]+))?)*)\s*(,|$)/y;
const parameter = /;\s*([a-z*][a-z0-9_\-.*]*)=(-?\d{1,15})(?=\s*(?:;|$))/g;

/** The items of a field such as `RateLimit`; none if it is malformed anywhere. */
export function items(field: string | null): Item[] {
  const found: Item[] = [];
  if (field === null) return found;
  item.lastIndex = 0;
  for (let more = true; more; ) {
    const match = item.exec(field);
    if (match === null) return [];
    const [, name = "", parameters = "", comma] = match;
    const numbers = new Map<string, number>();
    for (const [, key = "", value] of parameters.matchAll(parameter)) numbers.set(key, Number(value));
    found.push({ name: name.replace(/\\(.)/g, "$1"), numbers });
    more = comma === ",";
  }
  return found;
}
