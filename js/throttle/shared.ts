import { TollgateError } from "../error.ts";
import type { RateLimiter } from "../limiter.ts";
import { step } from "../step.ts";
import type { Decision, Key, Policies, State } from "../types.ts";

const database = "tollgate";
const store = "states";

/** Of another algorithm the core makes nothing: two versions of a page must not wipe each other's states. */
const madeBy = (policies: Policies) =>
  [policies].flat().map(({ name, algorithm }) => `${algorithm}:${name ?? ""}`);

/** One budget for all tabs and workers of an origin: IndexedDB holds the states, and its transactions take turns. */
export class SharedBudget {
  readonly #name: string;
  readonly #policies: Policies;
  readonly #clock: () => number;
  readonly #own: RateLimiter;
  readonly #changed: () => void;
  readonly #channel: BroadcastChannel | undefined;
  #opened: Promise<IDBDatabase> | undefined;
  #alone = false;
  #warned = false;

  constructor(name: string, policies: Policies, clock: () => number, own: RateLimiter, changed: () => void) {
    this.#name = [name, ...madeBy(policies)].join("\0");
    this.#changed = changed;
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
    const id = `${this.#name}\0${typeof key}\0${key}`;
    // Storage that was cleared under us takes its connection along: a second try gets a fresh one.
    for (let left = 1; !this.#alone; left -= 1) {
      try {
        const { decision, cleared } = await this.#transact(await this.#open(), id, cost);
        // A budget that starts afresh lets others through sooner than they were told.
        if (cleared) this.#channel?.postMessage("cleared");
        return decision;
      } catch (error) {
        if (error instanceof TollgateError) throw error;
        this.#opened = undefined;
        if (left > 0) continue;
        this.#alone = true;
        this.#warn("IndexedDB cannot be used here, so this page has a budget of its own.", error);
      }
    }
    return this.#own.hit(key, cost);
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
          const { state, changed, decision, expiresAt, afresh } = this.#step(stored.result, cost);
          if (changed && state === null) states.delete(id);
          else if (changed) states.put({ ...state, expiresAt }, id);
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

  /** Lets go of what it holds. Who still asks has the budget of this page alone. */
  close(): void {
    this.#alone = true;
    this.#channel?.close();
    this.#opened?.then(
      (opened) => opened.close(),
      () => {},
    );
  }

  #open(): Promise<IDBDatabase> {
    this.#opened ??= this.#connect();
    return this.#opened;
  }

  async #connect(): Promise<IDBDatabase> {
    let opened = await open();
    if (!opened.objectStoreNames.contains(store)) {
      this.#warn("what was stored cannot be read, so the shared budget starts afresh.", opened.name);
      opened.close();
      await finished(indexedDB.deleteDatabase(database));
      opened = await open();
    }
    const forget = () => {
      this.#opened = undefined;
      this.#changed();
    };
    // Storage that is cleared, or a newer page that wants another version, must not find us holding on.
    opened.onversionchange = () => {
      opened.close();
      forget();
    };
    opened.onclose = forget;
    removeEnded(opened, this.#clock());
    return opened;
  }

  #warn(message: string, error: unknown): void {
    if (!this.#warned) console.warn(`tollgate: ${message}`, error);
    this.#warned = true;
  }
}

/** Removes the states of keys that nobody came back for. */
function removeEnded(opened: IDBDatabase, now: number): void {
  const walk = opened.transaction(store, "readwrite").objectStore(store).openCursor();
  walk.onsuccess = () => {
    const cursor = walk.result;
    if (cursor?.value?.expiresAt <= now) cursor?.delete();
    cursor?.continue();
  };
}

const finished = <Result>(request: IDBRequest<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(database, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(store);
  return finished(request);
}
