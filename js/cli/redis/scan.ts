import type { Connection } from "./connection.ts";

/** How many keys Redis looks at in one call: it serves nobody else meanwhile, for a few tenths of a millisecond. */
export const keysPerCall = 1_000;

/** Goes through all keys of Redis, and finds those with a prefix. */
export class KeyScan {
  /** About how many keys were looked at. */
  scanned = 0;
  readonly #connections: Connection[];
  readonly #prefix: string;
  #cursor = "0";

  constructor(connections: readonly Connection[], prefix: string) {
    this.#connections = [...connections];
    this.#prefix = prefix;
  }

  /** Whether all keys were looked at. */
  get isDone(): boolean {
    return this.#connections.length === 0;
  }

  /** Looks at some more keys. Returns those with the prefix, without it; a key may come twice. */
  async next(): Promise<string[]> {
    const connection = this.#connections[0] as Connection;
    const pattern = `${this.#prefix.replace(/[\\*?[\]]/g, "\\$&")}*`;
    const reply = await connection.send([
      "SCAN",
      this.#cursor,
      "MATCH",
      pattern,
      "COUNT",
      String(keysPerCall),
    ]);
    const [cursor, keys] = reply as readonly [string, readonly string[]];
    this.scanned += keysPerCall;
    this.#cursor = cursor;
    if (cursor === "0") this.#connections.shift();
    return keys.map((key) => key.slice(this.#prefix.length));
  }
}
