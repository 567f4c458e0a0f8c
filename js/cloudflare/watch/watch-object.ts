import { log } from "../log.ts";
import { Book } from "./book.ts";
import { day } from "./denials.ts";
import type { Report } from "./report.ts";

/** The time between two saves, in milliseconds: as much is lost if the object ends without one. */
const period = 60_000;

/** The length of a part of the stored text. A row may have two megabytes, and a UTF-16 unit three bytes. */
const partLength = 600_000;

const prefix = "watch:";

/** A message to the watch object. */
export type Question = { readonly report: Report } | { readonly view: true } | { readonly denialsOf: string };

/** The one object that gets the reports of all isolates. It keeps them in memory, and writes them once a minute. */
export class WatchObject {
  readonly #storage: DurableObjectStorage;
  readonly #book: Book;
  /** How many parts the stored text has. */
  #parts: number;
  #isChanged = false;
  /** Whether an alarm is set that saves the book; `undefined` if that is not known. */
  #isAlarmed: Promise<boolean> | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    const parts = partsIn(storage);
    this.#parts = parts.length;
    this.#book = bookOf(parts);
  }

  /** Takes a report, or returns what is kept, as JSON. */
  async ask(json: string, now: number): Promise<string> {
    const question = JSON.parse(json) as Question;
    if ("view" in question) return JSON.stringify(this.#book.view(now));
    if ("denialsOf" in question) return JSON.stringify(this.#book.denialsOf(question.denialsOf, now));
    this.#book.add(question.report, now);
    this.#isChanged = true;
    await this.#alarm(now);
    return "{}";
  }

  /** Saves the book, and deletes all of it a day after its last report. */
  async ring(now: number): Promise<void> {
    const json = this.#book.stored(now);
    if (json === undefined) {
      this.#isAlarmed = Promise.resolve(false);
      this.#parts = 0;
      await this.#storage.deleteAll();
      return;
    }
    if (this.#isChanged) this.#save(json);
    // While there are reports the next alarm is that of the next save: setting it costs as much as a save.
    this.#isAlarmed = Promise.resolve(this.#isChanged);
    const next = this.#isChanged ? period : day;
    this.#isChanged = false;
    await this.#storage.setAlarm(now + next);
  }

  #save(json: string): void {
    const { kv } = this.#storage;
    const count = Math.ceil(json.length / partLength);
    for (let at = 0; at < count; at += 1)
      kv.put(`${prefix}${at}`, json.slice(at * partLength, (at + 1) * partLength));
    for (let at = count; at < this.#parts; at += 1) kv.delete(`${prefix}${at}`);
    this.#parts = count;
  }

  /** Sets the alarm that saves what has been reported, unless it is set. */
  async #alarm(now: number): Promise<void> {
    this.#isAlarmed ??= this.#storage.getAlarm().then((at) => at !== null && at <= now + period);
    if (await this.#isAlarmed) return;
    this.#isAlarmed = Promise.resolve(true);
    await this.#storage.setAlarm(now + period);
  }
}

/** Returns the parts of the stored text. */
function partsIn({ kv }: DurableObjectStorage): string[] {
  const parts: string[] = [];
  for (let part = kv.get<string>(prefix + 0); part !== undefined; part = kv.get(prefix + parts.length))
    parts.push(part);
  return parts;
}

/** Returns the stored book, or an empty one if there is none that can be read. */
function bookOf(parts: readonly string[]): Book {
  try {
    return new Book(parts.length === 0 ? undefined : parts.join(""));
  } catch (error) {
    log({ event: "unreadable", via: "watch", cause: String(error) });
    return new Book();
  }
}
