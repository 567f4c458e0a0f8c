/** An item of a structured field: a quoted name, and its parameters that are integers. */
export interface Item {
  readonly name: string;
  readonly numbers: ReadonlyMap<string, number>;
}

/**
 * Parses the items of a field such as `RateLimit` (RFC 9651); returns none if it is malformed anywhere.
 *
 * The text is the server's, so the scanner only moves forward: the time is linear in its length.
 */
export function items(field: string | null): Item[] {
  const found: Item[] = [];
  if (field === null) return found;
  const scanner = new Scanner(field);
  do {
    const item = scanner.item();
    if (item === undefined) return [];
    found.push(item);
  } while (scanner.takes(","));
  return scanner.isAtEnd() ? found : [];
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  /** Takes this character and the blanks around it; false if another one is next. */
  takes(character: string): boolean {
    this.#run(isBlank);
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    this.#run(isBlank);
    return true;
  }

  /** Takes a name in quotes and its parameters. */
  item(): Item | undefined {
    this.#run(isBlank);
    const name = this.#quoted();
    if (name === undefined) return undefined;
    const numbers = new Map<string, number>();
    while (this.takes(";")) {
      const key = this.#run(isInKey);
      const value = this.#value();
      if (!/^[a-z*]/.test(key) || value === undefined) return undefined;
      // The last of several counts, also if it is no integer.
      if (/^-?\d{1,15}$/.test(value)) numbers.set(key, Number(value));
      else numbers.delete(key);
    }
    return { name, numbers };
  }

  /** Takes the value of a parameter: no text for a string or if there is no value, for neither is an integer. */
  #value(): string | undefined {
    if (this.#text[this.#at] !== "=") return "";
    this.#at += 1;
    if (this.#text[this.#at] === '"') return this.#quoted() === undefined ? undefined : "";
    return this.#run(isInValue) || undefined;
  }

  /** Takes a string in quotes, in which a backslash stands before a quote or another backslash. */
  #quoted(): string | undefined {
    if (this.#text[this.#at] !== '"') return undefined;
    let taken = "";
    for (;;) {
      this.#at += 1;
      let code = this.#text.charCodeAt(this.#at);
      if (code === quote) break;
      if (code === backslash) {
        this.#at += 1;
        code = this.#text.charCodeAt(this.#at);
        if (code !== quote && code !== backslash) return undefined;
      }
      if (!isPrintable(code)) return undefined;
      taken += String.fromCharCode(code);
    }
    this.#at += 1;
    return taken;
  }

  /** Takes all characters of a kind that come next. */
  #run(isOne: (code: number) => boolean): string {
    const start = this.#at;
    while (isOne(this.#text.charCodeAt(this.#at))) this.#at += 1;
    return this.#text.slice(start, this.#at);
  }
}

const quote = 34;
const backslash = 92;

const isBlank = (code: number) => code === 32 || code === 9;

/** False past the end of the text as well, where there is no code. */
const isPrintable = (code: number) => code >= 32 && code <= 126;

/** Lower-case letters, digits, `_`, `-`, `.` and `*`. */
const isInKey = (code: number) =>
  (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || [95, 45, 46, 42].includes(code);

/** Whatever does not end a number, a token, a date or bytes: a blank, a comma, a semicolon or a quote. */
const isInValue = (code: number) => isPrintable(code) && ![32, 34, 44, 59].includes(code);
