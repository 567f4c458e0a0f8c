/** Lines that are longer are no lines of a log. */
const longestLine = 1 << 20;
const newline = 10;

/** Cuts bytes into texts of whole lines, so that no character and no line is split. */
export class TextBlocks {
  readonly #decoder = new TextDecoder();
  #rest: Uint8Array = new Uint8Array(0);
  #isSkipping = false;
  /** How many lines were dropped because they are too long. */
  tooLong = 0;

  /** Takes more bytes, and returns the lines that they complete; `""` if none. */
  push(bytes: Uint8Array): string {
    let start = 0;
    if (this.#isSkipping) {
      start = bytes.indexOf(newline) + 1;
      if (start === 0) return "";
      this.#isSkipping = false;
    }
    const end = bytes.lastIndexOf(newline) + 1;
    if (end <= start) {
      this.#keep(joined(this.#rest, bytes.subarray(start)));
      return "";
    }
    const block = joined(this.#rest, bytes.subarray(start, end));
    this.#rest = new Uint8Array(0);
    this.#keep(bytes.slice(end));
    return this.#decoder.decode(block);
  }

  /** Returns the last line, which need not end in a newline. */
  end(): string {
    const rest = this.#rest;
    this.#rest = new Uint8Array(0);
    return rest.length === 0 ? "" : `${this.#decoder.decode(rest)}\n`;
  }

  #keep(rest: Uint8Array): void {
    this.#isSkipping = rest.length > longestLine;
    if (this.#isSkipping) this.tooLong += 1;
    this.#rest = this.#isSkipping ? new Uint8Array(0) : rest;
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
