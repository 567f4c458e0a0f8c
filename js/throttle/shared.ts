import { TollgateError } from "../errors/error.ts";
import type { RateLimiter } from "../limiter/limiter.ts";
import { step } from "../limiter/step.ts";
import type { Decision, Key, Policies, State } from "../types.ts";

import { never } from "./alarm.ts";

const database = "tollgate";
const store = "states";

/** Names and algorithms are part of a state's id: two versions of a page must not overwrite each other's states. */
const madeBy = (policies: Policies) =>
  [policies].flat().map(({ name, algorithm }) => `${algorithm}:${name ?? ""}`);

/** The result for a key that is paused, whatever its policy allows. */
export interface StoredPause {
  readonly pausedUntil: number;
}

/** A hold as it is stored. */
interface StoredHold {
  readonly expiresAt: number;
  readonly length: number;
}

/** One budget for all tabs and workers of an origin. The states are in IndexedDB, whose transactions take turns. */
export class SharedBudget {
  readonly #name: string;
  readonly #states: string;
  readonly #policies: Policies;
  readonly #clock: () => number;
  readonly #own: RateLimiter;
  readonly #maxHold: number;
  readonly #changed: () => void;
  /** Open while calls wait: an open channel keeps Node and Deno alive. */
  #channel: BroadcastChannel | undefined;
  #opened: Promise<IDBDatabase> | undefined;
  #alone = false;
  #warned = false;

  constructor(
    name: string,
    policies: Policies,
    clock: () => number,
    own: RateLimiter,
    maxHold: number,
    changed: () => void,
  ) {
    this.#name = name;
    this.#states = [name, ...madeBy(policies)].join("\0");
    this.#maxHold = maxHold;
    this.#changed = changed;
    this.#policies = policies;
    this.#clock = clock;
    this.#own = own;
  }

  /** Decides a hit in one transaction, isolated from other tabs. */
  async take(key: Key, cost: number): Promise<Decision | StoredPause> {
    this.#listen();
    const id = `${this.#states}\0${typeof key}\0${key}`;
    const holdId = this.#holdId(key);
    const taken = await this.#stored([id, holdId], (states, [stored, hold]) => {
      const now = this.#clock();
      // A pause that another page stored is not longer than this page's own `maxHold`.
      const end = Math.min(endOf(hold, now), now + this.#maxHold);
      if (end > now) {
        if (end < (hold as StoredHold).expiresAt)
          states.put({ ...(hold as StoredHold), expiresAt: end }, holdId);
        return { pausedUntil: end };
      }
      if (hold !== undefined) states.delete(holdId);
      const { state, changed, expiresAt, ...outcome } = this.#step(stored as State | undefined, cost, now);
      if (changed && state === null) states.delete(id);
      else if (changed) states.put({ ...state, expiresAt }, id);
      return outcome;
    });
    if (taken === undefined) return this.#own.hit(key, cost);
    if ("pausedUntil" in taken) return taken;
    // A budget that starts afresh lets others through sooner than their last decision said.
    if (taken.afresh) this.#tell();
    return taken.decision as Decision;
  }

  /** Pauses a key in every tab until a time. It is stored, so that it binds tabs that open later too. */
  async hold(key: Key, until: number, length: number): Promise<void> {
    // A pause without an end holds in this page only.
    if (until === never) return;
    const id = this.#holdId(key);
    await this.#stored([id], (states, [hold]) => {
      if (endOf(hold, this.#clock()) < until) states.put({ expiresAt: until, length }, id);
    });
  }

  /** Listens to other tabs, before a decision that one of them may change. */
  #listen(): void {
    if (this.#channel || this.#alone || typeof BroadcastChannel === "undefined") return;
    this.#channel = new BroadcastChannel(`${database}:${this.#name}`);
    this.#channel.onmessage = this.#changed;
  }

  /** Has other tabs with waiting calls ask again. */
  #tell(): void {
    const isListening = this.#channel !== undefined;
    this.#listen();
    this.#channel?.postMessage("changed");
    if (!isListening) this.rest();
  }

  /** Stops listening to other tabs, when no call waits. */
  rest(): void {
    this.#channel?.close();
    this.#channel = undefined;
  }

  /** Returns the id of a hold. It binds every version of a page, whatever its policies. No state's id is an array. */
  #holdId(key: Key): string[] {
    return ["hold", this.#name, typeof key, `${key}`];
  }

  /** Decides by stored records in one transaction; undefined if storage cannot be used. */
  async #stored<Result>(ids: IDBValidKey[], decide: Decide<Result>): Promise<Result | undefined> {
    // Clearing the storage closes its connection: a second try opens a new one.
    for (let left = 1; !this.#alone; left -= 1) {
      try {
        return await transact(await this.#open(), ids, decide);
      } catch (error) {
        if (error instanceof TollgateError) throw error;
        this.#opened = undefined;
        if (left > 0) continue;
        this.#alone = true;
        this.rest();
        this.#warn("IndexedDB cannot be used here, so this page has a budget of its own.", error);
      }
    }
    return undefined;
  }

  #step(stored: State | undefined, cost: number, now: number) {
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

  /** Closes the database and the channel. Later calls use a budget of this page alone. */
  close(): void {
    this.#alone = true;
    this.rest();
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
    // An open connection would block clearing the storage, or a newer page that needs another version.
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

/** Decides by the records that a transaction has read, and writes to the store. */
type Decide<Result> = (states: IDBObjectStore, records: readonly unknown[]) => Result;

/** Reads records, decides by them and writes, in one transaction. */
function transact<Result>(
  opened: IDBDatabase,
  ids: readonly IDBValidKey[],
  decide: Decide<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const transaction = opened.transaction(store, "readwrite");
    const states = transaction.objectStore(store);
    const requests = ids.map((id) => states.get(id));
    let result: Result;
    let failure: unknown;
    // Requests succeed in order: after the last one, all have.
    (requests.at(-1) as IDBRequest).onsuccess = () => {
      try {
        const records = requests.map((request) => request.result);
        result = decide(states, records);
      } catch (error) {
        failure = error;
        transaction.abort();
      }
    };
    // Resolved only after the write is complete.
    transaction.oncomplete = () => resolve(result);
    transaction.onabort = () => reject(failure ?? transaction.error);
  });
}

/** Returns when a stored hold ends; 0 if there is none. A clock that stepped back does not make it longer. */
function endOf(hold: unknown, now: number): number {
  const { expiresAt, length } = (hold ?? {}) as Partial<StoredHold>;
  const isHold = Number.isFinite(expiresAt) && Number.isFinite(length);
  return isHold ? Math.min(expiresAt as number, now + (length as number)) : 0;
}

/** Removes ended states and holds. */
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
