/** The longest event that is read, in characters: a longer one is passed on unread. */
const longest = 2 ** 24;

/** Receives the data of an event, and returns false if the event is not to be passed on. */
export type OnEvent = (data: string) => boolean;

/** Reads server-sent events from the chunks of a response, and returns the chunks to pass on. */
export class EventReader {
  readonly #onEvent: OnEvent;
  readonly #onUnread: (text: string) => void;
  /** Whether events may be left out, so that only whole ones are passed on. */
  readonly #isWhole: boolean;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true, fatal: false });
  readonly #encoder = new TextEncoder();
  #rest = "";
  #isUnread = false;

  constructor(onEvent: OnEvent, onUnread: (text: string) => void, isWhole: boolean) {
    this.#onEvent = onEvent;
    this.#onUnread = onUnread;
    this.#isWhole = isWhole;
  }

  /** Reads a chunk, and returns the bytes to pass on now; `undefined` if there are none. */
  read(chunk: Uint8Array): Uint8Array | undefined {
    const text = this.#decoder.decode(chunk, { stream: true });
    if (this.#isUnread) {
      this.#onUnread(text);
      // The first bytes of a character may be in the decoder.
      return this.#isWhole ? this.#encoder.encode(text) : chunk;
    }
    const passed = this.#take(text);
    if (!this.#isWhole) return chunk;
    return passed === "" ? undefined : this.#encoder.encode(passed);
  }

  /** Returns the bytes of an event that the response ended in; `undefined` if there are none. */
  rest(): Uint8Array | undefined {
    const rest = this.#rest;
    this.#rest = "";
    // The last event may end without an empty line.
    if (rest === "" || (!this.#event(rest) && this.#isWhole)) return undefined;
    return this.#isWhole ? this.#encoder.encode(rest) : undefined;
  }

  /** Takes the events that are complete, and returns the text of those to pass on. */
  #take(text: string): string {
    const all = this.#rest + text;
    let passed = "";
    let start = 0;
    // The end of an event may be cut anywhere in its line breaks.
    ending.lastIndex = Math.max(this.#rest.length - 3, 0);
    for (let found = ending.exec(all); found !== null; found = ending.exec(all)) {
      // The other half of a line break may come with the next chunk: it stays with an event that is left out.
      if (this.#isWhole && ending.lastIndex === all.length && all.endsWith("\r")) break;
      const event = all.slice(start, ending.lastIndex);
      if (this.#event(event)) passed += event;
      start = ending.lastIndex;
    }
    this.#rest = all.slice(start);
    if (this.#rest.length <= longest) return passed;
    this.#isUnread = true;
    this.#onUnread(this.#rest);
    const rest = this.#rest;
    this.#rest = "";
    return passed + rest;
  }

  #event(event: string): boolean {
    // Most events are one line.
    const end = event.indexOf("\n");
    if (event.startsWith("data: ") && !event.includes("\r") && /^\n?$/.test(event.slice(end + 1)))
      return this.#onEvent(event.slice(6, end));
    let data: string | undefined;
    for (const [, line = ""] of event.matchAll(dataLine))
      data = data === undefined ? line : `${data}\n${line}`;
    return data === undefined || this.#onEvent(data);
  }
}

/** An empty line after another line. */
const ending = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)/g;

/**
 * Not by `$` and `.`, for which a line also ends at U+2028, which JSON may contain. A stream may begin with a byte order
 * mark.
 */
const dataLine = /(?:^\uFEFF?|[\r\n])data: ?([^\r\n]*)/g;
