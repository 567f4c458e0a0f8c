import { invalidField, keyAccepts, TollgateError } from "../errors/error.ts";
import { schema } from "../wasm/generated.ts";
import { isWellFormed } from "../well-formed.ts";
import { disposed } from "./errors.ts";
import { KeyLog } from "./key-log.ts";
import type { Replicas } from "./replicas.ts";
import type { Counters } from "./stats.ts";

/** The logs of a limiter's keys: a bounded number, of which the least recently used are dropped. */
export class KeyLogs {
  readonly #replicas: Replicas;
  readonly #prefix: string;
  readonly #maxKeys: number;
  readonly #counters: Counters;
  #logs = new Map<string, KeyLog>();
  #isDisposed = false;

  /** `prefix` is that of the keys in Redis. */
  constructor(replicas: Replicas, prefix: string, maxKeys: number, counters: Counters) {
    this.#replicas = replicas;
    this.#prefix = prefix;
    this.#maxKeys = maxKeys;
    this.#counters = counters;
  }

  get size(): number {
    return this.#logs.size;
  }

  /** Returns the log of a key; `undefined` if it has none, or the limiter is disposed. */
  find(key: string): KeyLog | undefined {
    return this.#isDisposed ? undefined : this.#logs.get(key);
  }

  /** Returns the log of a key, and adds it if needed. Throws if the key is invalid or the limiter is disposed. */
  get(key: string): KeyLog {
    if (this.#isDisposed) throw disposed();
    if (this.#replicas.isLost) this.#recreate();
    const log = this.#logs.get(key);
    if (log === undefined) return this.#add(key);
    log.isUsed = true;
    return log;
  }

  /** Hands out no log any more. Returns false if it did not before. */
  dispose(): boolean {
    const wasDisposed = this.#isDisposed;
    this.#isDisposed = true;
    return !wasDisposed;
  }

  /** Drops all logs, and frees their slots. */
  free(): void {
    this.#dropAll();
    this.#replicas.free();
  }

  #add(key: string): KeyLog {
    checkStoredKey(key);
    if (this.#logs.size >= this.#maxKeys) this.#evict();
    const slot = this.#replicas.take();
    if (slot < 0) throw new TollgateError("out_of_memory", "there is no memory left for another key");
    const log = new KeyLog(this.#prefix + key, slot);
    this.#logs.set(key, log);
    return log;
  }

  /** Drops the first key that was not used since the last search. */
  #evict(): void {
    let busy = 0;
    for (const [key, log] of this.#logs) {
      if (!log.isBusy && !log.isUsed) {
        this.#logs.delete(key);
        this.#replicas.release(log.slot);
        log.isDropped = true;
        this.#counters.evicted++;
        return;
      }
      // A used key is skipped once, and a busy one always.
      log.isUsed = false;
      this.#logs.delete(key);
      this.#logs.set(key, log);
      if (log.isBusy && ++busy > this.#logs.size) return;
    }
  }

  /** Starts without cached states after a trap in the wasm has lost them. They are read again from Redis. */
  #recreate(): void {
    this.#dropAll();
    this.#replicas.recreate();
  }

  #dropAll(): void {
    for (const log of this.#logs.values()) log.isDropped = true;
    this.#logs = new Map();
  }
}

/** Checks that a key can be stored outside the process. */
function checkStoredKey(key: unknown): asserts key is string {
  const isStored =
    typeof key === "string" &&
    key !== "" &&
    isWellFormed(key) &&
    (3 * key.length <= schema.maxKeyBytes || new TextEncoder().encode(key).length <= schema.maxKeyBytes);
  if (!isStored) throw invalidField("invalid_key", "key", key, keyAccepts);
}
