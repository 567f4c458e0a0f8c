/** An item of a structured field: a quoted name, and its parameters that are integers. */
export interface Item {
  readonly name: string;
  readonly numbers: ReadonlyMap<string, number>;
  /** The string of its parameter `qu`, which says what it counts. */
  readonly unit: string | undefined;
}

// No two alternatives begin with the same character, so matching never backtracks: the text comes from a server.
const blanks = /[ \t]*/y;
const comma = /[ \t]*,[ \t]*/y;
/** A string in quotes, in which a backslash stands before a quote or another backslash. */
const quoted = /"((?:[ !#-[\]-~]|\\["\\])*)"/y;
/** A key and its value: a string in quotes, or whatever a blank, a comma, a semicolon or a quote ends. */
const parameter = /[ \t]*;[ \t]*([a-z*][a-z\d_.*-]*)(?:=("(?:[ !#-[\]-~]|\\["\\])*"|[!#-+\--:<-~]+))?/y;

/**
 * Parses the items of a field such as `RateLimit` (RFC 9651); returns none if it is malformed anywhere. The time is
 * linear in its length.
 */
export function items(field: string | null): Item[] {
  const text = field ?? "";
  let at = 0;
  const take = (kind: RegExp) => {
    kind.lastIndex = at;
    const taken = kind.exec(text);
    if (taken) at = kind.lastIndex;
    return taken;
  };
  const found: Item[] = [];
  take(blanks);
  do {
    const name = take(quoted)?.[1];
    if (name === undefined) return [];
    const numbers = new Map<string, number>();
    let unit: string | undefined;
    for (let taken = take(parameter); taken; taken = take(parameter)) {
      const [, key = "", value = ""] = taken;
      // The last of several values counts, even if it is not an integer.
      if (/^-?\d{1,15}$/.test(value)) numbers.set(key, Number(value));
      else numbers.delete(key);
      if (key === "qu") unit = value.slice(1, -1);
    }
    found.push({ name: name.replace(/\\(.)/g, "$1"), numbers, unit });
  } while (take(comma));
  take(blanks);
  return at === text.length ? found : [];
}
