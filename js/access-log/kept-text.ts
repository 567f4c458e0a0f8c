const encoder = new TextEncoder();
const [utf8, utf16] = [
  new TextDecoder("utf-8", { ignoreBOM: true }),
  new TextDecoder("utf-16le", { ignoreBOM: true }),
];

/** A text outside of the heap, of which parts are read: a byte for each character if it is ASCII, otherwise two. */
export class KeptText {
  readonly #units: Uint8Array | Uint16Array;

  constructor(text: string) {
    const bytes = encoder.encode(text);
    this.#units = bytes.length === text.length ? bytes : unitsOf(text);
  }

  slice(start: number, end: number): string {
    const units = this.#units.subarray(start, end);
    return (units instanceof Uint8Array ? utf8 : utf16).decode(units);
  }
}

function unitsOf(text: string): Uint16Array {
  const units = new Uint16Array(text.length);
  for (let at = 0; at < text.length; at += 1) units[at] = text.charCodeAt(at);
  return units;
}
