import { ipKey } from "../index.ts";
import type { Field, Format } from "./format.ts";

/** The key part that is the same for every line. */
export const everyone = "all";

/** Texts and their numbers, in order of appearance. */
export class Table {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];

  get size(): number {
    return this.#texts.length;
  }

  /** Returns the number of a text; undefined if it has none. */
  find(text: string): number | undefined {
    return this.#numbers.get(text);
  }

  /** Returns the number of a text; adds the text if it has none. */
  add(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.length;
    // A copy, since a slice keeps the whole text alive that it was cut from.
    const copy: string = JSON.parse(JSON.stringify(text));
    this.#numbers.set(copy, number);
    this.#texts.push(copy);
    return number;
  }

  text(number: number): string {
    return this.#texts[number] as string;
  }
}

/** Returns the number of the key of the last line, or why it has none. */
export type KeyOf = () => number | string;

/** How many spellings of IPv6 addresses are remembered. */
const mostSpellings = 65_536;

/** Returns a function that returns the key of the last line, which is made of one part or several. */
export function keyOf(parts: readonly string[], format: Format, table: Table): KeyOf {
  const [first = everyone] = parts;
  if (parts.length > 1) return joinedKey(parts, format, table);
  if (first === everyone) return () => table.add(everyone);
  if (first === "ip") return addressKey(format.field("ip"), table);
  const field = format.field(first);
  return () => {
    const value = field();
    return value === undefined ? missing(first) : (table.find(value) ?? table.add(value));
  };
}

/** Keys by the client's address. An IPv4 address is its own key, so it is looked up as it is. */
function addressKey(field: Field, table: Table): KeyOf {
  const spellings = new Map<string, number>();
  return () => {
    const address = field();
    if (address === undefined) return missing("ip");
    const isIpv6 = address.includes(":");
    const known = isIpv6 ? spellings.get(address) : table.find(address);
    if (known !== undefined) return known;
    const key = networkOf(address);
    if (key === undefined) return notAnAddress(address);
    const number = table.add(key);
    if (isIpv6) {
      if (spellings.size >= mostSpellings) spellings.clear();
      spellings.set(JSON.parse(JSON.stringify(address)), number);
    }
    return number;
  };
}

/** Keys by several fields, joined so that no two lists of values have the same key. */
function joinedKey(parts: readonly string[], format: Format, table: Table): KeyOf {
  const fields = parts.map((part) => (part === everyone ? () => everyone : format.field(part)));
  return () => {
    let key = "";
    for (const [at, field] of fields.entries()) {
      const value = field();
      const part = parts[at] as string;
      if (value === undefined) return missing(part);
      const own = part === "ip" ? networkOf(value) : value;
      if (own === undefined) return notAnAddress(value);
      // A value with a blank is quoted, since blanks separate values.
      key += (at === 0 ? "" : " ") + (own.includes(" ") ? JSON.stringify(own) : own);
    }
    return table.add(key);
  };
}

function networkOf(address: string): string | undefined {
  try {
    return ipKey(address);
  } catch {
    return undefined;
  }
}

const missing = (part: string) => `it has no ${part}`;

const notAnAddress = (address: string) =>
  `${JSON.stringify(address.slice(0, 64))} is not an IP address; use --key host for names`;
