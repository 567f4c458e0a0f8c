import { keysPrefix } from "../../redis/names.ts";
import type { Nodes } from "./nodes.ts";
import type { LimiterName } from "./stored-limiter.ts";

/** A note on an exception, with the end of that exception: so another one, set since, is not taken for it. */
interface Note {
  readonly until: number;
  readonly note: string;
}

/** The notes of a limiter's exceptions: a key of Redis for each, which ends with its exception. */
export class Notes {
  readonly #nodes: Nodes;

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** Keeps the note of an exception that ends at a time, or removes that of the one before. */
  async write(limiter: LimiterName, key: string, until: number, now: number, note?: string): Promise<void> {
    const name = nameOf(limiter, key);
    if (note === undefined || until <= now) await this.#nodes.send(["DEL", name]);
    else {
      const value: Note = { until, note };
      await this.#nodes.send(["SET", name, JSON.stringify(value), "PX", String(until - now)]);
    }
  }

  /** Returns the note of the exception that ends at a time; `undefined` if there is none. */
  async read(limiter: LimiterName, key: string, until: number): Promise<string | undefined> {
    const value = await this.#nodes.send(["GET", nameOf(limiter, key)]);
    if (typeof value !== "string") return undefined;
    try {
      const written = JSON.parse(value) as Note;
      return written.until === until && typeof written.note === "string" ? written.note : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Beside the keys of limiters, whose prefix has the number of a format. */
const nameOf = ({ prefix, name }: LimiterName, key: string): string =>
  keysPrefix(`${prefix}note:`, name) + key;
