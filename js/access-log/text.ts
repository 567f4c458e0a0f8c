/** The most bytes of a line that are read. */
const longestLine = 1 << 20;
const newline = 10;

/** Decodes bytes into texts of whole lines, so that no character and no line is split. */
export class TextBlocks {
  readonly #decoder = new TextDecoder();
  /** The start of a line whose end has not been read yet. */
  #rest: Uint8Array = new Uint8Array(0);

  /** Adds bytes, and returns the lines that they complete; `""` if none. */
  push(bytes: Uint8Array): string {
    const first = bytes.indexOf(newline);
    if (first < 0) {
      this.#keep(bytes);
      return "";
    }
    const end = bytes.lastIndexOf(newline) + 1;
    // `#rest` has the start of a line that is too long; the rest of that line is skipped.
    const start = this.#rest.length === longestLine ? first : 0;
    const text = this.#decoder.decode(joined(this.#rest, bytes.subarray(start, end)));
    this.#rest = new Uint8Array(0);
    this.#keep(bytes.subarray(end));
    return text;
  }

  /** Returns the last line, which need not end in a newline. */
  end(): string {
    const rest = this.#rest;
    this.#rest = new Uint8Array(0);
    return rest.length === 0 ? "" : `${this.#decoder.decode(rest)}\n`;
  }

  #keep(bytes: Uint8Array): void {
    const room = longestLine - this.#rest.length;
    // A copy, since a view would keep the whole chunk alive.
    this.#rest = joined(this.#rest, bytes.slice(0, room));
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  if (other.length === 0) return one;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
