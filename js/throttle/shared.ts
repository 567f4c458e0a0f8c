import { TollgateError } from "../errors/error.ts";
import type { Step } from "../limiter/step.ts";
import type { Decision, Key, Policies, State } from "../types.ts";
import { never } from "./alarm.ts";
import type { Limits, StoredPause, Timed } from "./limits.ts";
import { grace, olderThan, recordOf, type Turn, turnsIn } from "./turns.ts";

const database = "tollgate";
const store = "states";

/** Names and algorithms are part of a state's id: two versions of a page must not overwrite each other's states. */
const madeBy = (policies: Policies) =>
  [policies].flat().map(({ name, algorithm }) => `${algorithm}:${name ?? ""}`);

/** Decides a hit or a peek on the stored state of a key. */
export type StepOn = (state: State | null, operation: "hit" | "peek", cost: number, now: number) => Step;

/** A hold as it is stored. */
interface StoredHold {
  readonly expiresAt: number;
  readonly length: number;
}

/** A decision, and whether it lets calls in other tabs through sooner than they know. */
interface Taken extends Timed {
  readonly tells: boolean;
}

/** One budget for all tabs and workers of an origin. The states are in IndexedDB, whose transactions take turns. */
export class SharedBudget {
  readonly #name: string;
  readonly #states: string;
  readonly #stepOn: StepOn;
  readonly #clock: () => number;
  readonly #own: Limits;
  readonly #maxHold: number;
  readonly #changed: (key?: Key) => void;
  /** Open while calls wait: an open channel keeps Node and Deno alive. */
  #channel: BroadcastChannel | undefined;
  /** This budget among those of other tabs. */
  readonly #id = Math.random().toString(36).slice(2);
  /** Since when the calls of a key wait here without a turn. */
  readonly #since = new Map<Key, number>();
  /** The keys of which a turn is stored. */
  readonly #waiting = new Set<Key>();
  #opened: Promise<IDBDatabase> | undefined;
  #alone = false;
  #warned = false;

  constructor(
    name: string,
    policies: Policies,
    clock: () => number,
    own: Limits,
    maxHold: number,
    changed: (key?: Key) => void,
    stepOn: StepOn,
  ) {
    this.#name = name;
    this.#states = [name, ...madeBy(policies)].join("\0");
    this.#maxHold = maxHold;
    this.#changed = changed;
    this.#stepOn = stepOn;
    this.#clock = clock;
    this.#own = own;
  }

  /** Decides a hit in one transaction, isolated from other tabs. A call that can wait until `deadline` takes turns. */
  async take(key: Key, cost: number, deadline: number): Promise<Timed | StoredPause> {
    this.#listen();
    const id = `${this.#states}\0${typeof key}\0${key}`;
    const holdId = this.#holdId(key);
    const turnsId = this.#turnsId(key);
    const taken = await this.#stored<StoredPause | Taken>(
      [id, holdId, turnsId],
      (states, [stored, hold, turns]) => {
        const now = this.#clock();
        // A pause that another page stored is not longer than this page's own `maxHold`.
        const end = Math.min(endOf(hold, now), now + this.#maxHold);
        if (end > now) {
          if (end < (hold as StoredHold).expiresAt)
            states.put({ ...(hold as StoredHold), expiresAt: end }, holdId);
          return { pausedUntil: end };
        }
        if (hold !== undefined) states.delete(holdId);
        const all = turnsIn(turns, now);
        const others = all.filter((turn) => turn.id !== this.#id);
        const since = this.#since.get(key) ?? now;
        const mine: Turn = { id: this.#id, since, due: now, cost, yields: false };
        const result = this.#inTurn(stored as State | undefined, mine, olderThan(mine, others), now);
        const { state, changed, expiresAt, decision, afresh, yields } = result;
        if (changed && state === null) states.delete(id);
        else if (changed) states.put({ ...state, expiresAt }, id);
        const due = now + decision.retryAfter;
        // A call that gives up has no turn that others would wait for.
        const waits = !decision.allowed && due <= deadline && due < never;
        replace(states, turnsId, turns, recordOf(waits ? [...others, { ...mine, due, yields }] : others));
        this.#since.set(key, decision.allowed ? now : since);
        if (waits) this.#waiting.add(key);
        else this.#waiting.delete(key);
        // Told once: two that yield to a third would wake each other again and again.
        const isNewYield = yields && !all.some((turn) => turn.id === this.#id && turn.yields);
        const isAwaited = decision.allowed && others.some((turn) => turn.yields);
        return { decision, now, tells: afresh || isNewYield || isAwaited };
      },
    );
    if (taken === undefined) return { decision: this.#own.hit(key, cost), now: this.#clock() };
    if ("pausedUntil" in taken) return taken;
    // A budget that starts afresh, or a turn that was taken or missed, lets others through sooner than they know.
    if (taken.tells) this.#tell(key);
    return taken;
  }

  /** Decides a hit, unless a tab that has waited longer would have no room after it: that one goes first. */
  #inTurn(stored: State | undefined, { cost }: Turn, older: readonly Turn[], now: number) {
    const needed = Math.min(
      older.reduce((sum, turn) => sum + turn.cost, cost),
      Number.MAX_SAFE_INTEGER,
    );
    if (older.length > 0 && !this.#step(stored, "peek", needed, now).decision.allowed) {
      const peeked = this.#step(stored, "peek", cost, now);
      if (!peeked.decision.allowed) return { ...peeked, yields: false };
      const retryAfter = Math.max(...older.map((turn) => turn.due), now) + grace - now;
      return { ...peeked, decision: { ...peeked.decision, allowed: false, retryAfter }, yields: true };
    }
    return { ...this.#step(stored, "hit", cost, now), yields: false };
  }

  /** Gives up the turn of a key for which no call waits here any more. */
  async leave(key: Key): Promise<void> {
    this.#since.delete(key);
    if (!this.#waiting.delete(key)) return;
    const id = this.#turnsId(key);
    await this.#stored([id], (states, [turns]) => {
      const others = turnsIn(turns, this.#clock()).filter((turn) => turn.id !== this.#id);
      replace(states, id, turns, recordOf(others));
    });
    this.#tell(key);
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
    this.#channel.onmessage = ({ data }) => this.#changed(data?.key);
  }

  /** Has other tabs in which calls of a key wait ask again. */
  #tell(key: Key): void {
    const isListening = this.#channel !== undefined;
    this.#listen();
    this.#channel?.postMessage({ key });
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

  /** Returns the id of the turns of tabs that wait for a key under the same policies. */
  #turnsId(key: Key): string[] {
    return ["turns", this.#states, typeof key, `${key}`];
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

  #step(stored: State | undefined, operation: "hit" | "peek", cost: number, now: number) {
    const stepped = (state: State | null) => {
      const { afresh, decision, ...rest } = this.#stepOn(state, operation, cost, now);
      return { ...rest, decision: decision as Decision, afresh: afresh.length > 0 };
    };
    try {
      return stepped(stored ?? null);
    } catch (error) {
      const unreadable =
        error instanceof TollgateError && ["invalid_state", "unsupported_version"].includes(error.code);
      if (!unreadable) throw error;
      this.#warn("what was stored cannot be read, so the shared budget starts afresh.", error);
      return { ...stepped(null), changed: true, afresh: true };
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

/** Writes a record in place of another, or removes that. */
function replace(states: IDBObjectStore, id: IDBValidKey, former: unknown, record: unknown): void {
  if (record !== undefined) states.put(record, id);
  else if (former !== undefined) states.delete(id);
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
