import { TollgateError } from "../error.ts";
import type { RateLimiter } from "../limiter.ts";
import { step } from "../step.ts";
import type { Decision, Key, Policies, State } from "../types.ts";

const database = "tollgate";
const store = "states";

/** One budget for all tabs and workers of an origin: IndexedDB holds the states, and its transactions take turns. */
export class SharedBudget {
  readonly #name: string;
  readonly #policies: Policies;
  readonly #clock: () => number;
  readonly #own: RateLimiter;
  readonly #channel: BroadcastChannel | undefined;
  #opened: Promise<IDBDatabase> | undefined;
  #warned = false;

  constructor(name: string, policies: Policies, clock: () => number, own: RateLimiter, changed: () => void) {
    this.#name = name;
    this.#policies = policies;
    this.#clock = clock;
    this.#own = own;
    if (typeof BroadcastChannel === "undefined") return;
    this.#channel = new BroadcastChannel(`${database}:${name}`);
    this.#channel.onmessage = changed;
    // In Node a channel would keep the process alive.
    (this.#channel as { unref?: () => void }).unref?.();
  }

  /** Reads, decides and writes in one transaction, which no other tab's can come between. */
  async take(key: Key, cost: number): Promise<Decision> {
    let opened: IDBDatabase;
    try {
      opened = await this.#open();
    } catch (error) {
      this.#warn("IndexedDB is not to be had here, so this page has a budget of its own.", error);
      return this.#own.hit(key, cost);
    }
    const { decision, cleared } = await this.#transact(opened, `${this.#name}\0${typeof key}\0${key}`, cost);
    // A budget that starts afresh lets others through sooner than they were told.
    if (cleared) this.#channel?.postMessage("cleared");
    return decision;
  }

  #transact(
    opened: IDBDatabase,
    id: string,
    cost: number,
  ): Promise<{ decision: Decision; cleared: boolean }> {
    return new Promise((resolve, reject) => {
      const transaction = opened.transaction(store, "readwrite");
      const states = transaction.objectStore(store);
      let outcome: { decision: Decision; cleared: boolean };
      let failure: unknown;
      const stored = states.get(id);
      stored.onsuccess = () => {
        try {
          const { state, changed, decision, afresh } = this.#step(stored.result, cost);
          if (changed && state === null) states.delete(id);
          else if (changed) states.put(state, id);
          outcome = { decision: decision as Decision, cleared: afresh };
        } catch (error) {
          failure = error;
          transaction.abort();
        }
      };
      // Only what is written is answered.
      transaction.oncomplete = () => resolve(outcome);
      transaction.onabort = () => reject(failure ?? transaction.error);
    });
  }

  #step(stored: State | undefined, cost: number) {
    const now = this.#clock();
    try {
      const { afresh, ...rest } = step(this.#policies, stored ?? null, "hit", cost, now);
      return { ...rest, afresh: afresh.length > 0 };
    } catch (error) {
      const unreadable =
        error instanceof TollgateError && ["invalid_state", "unsupported_version"].includes(error.code);
      if (!unreadable) throw error;
      this.#warn("what was stored cannot be read, so the shared budget starts afresh.", error);
      const { afresh: _, ...rest } = step(this.#policies, null, "hit", cost, now);
      return { ...rest, changed: true, afresh: true };
    }
  }

  #open(): Promise<IDBDatabase> {
    this.#opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(database, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(store);
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const forget = () => {
          this.#opened = undefined;
        };
        // Storage that is cleared, or a newer page that wants another version, must not find us holding on.
        request.result.onversionchange = () => {
          request.result.close();
          forget();
        };
        request.result.onclose = forget;
        resolve(request.result);
      };
    });
    return this.#opened;
  }

  #warn(message: string, error: unknown): void {
    if (!this.#warned) console.warn(`tollgate: ${message}`, error);
    this.#warned = true;
  }
}
