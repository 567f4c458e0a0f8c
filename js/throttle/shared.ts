import { TollgateError } from "../errors/error.ts";
import type { Step } from "../limiter/step.ts";
import type { Decision, Key, Policies, State } from "../types.ts";
import { never } from "./alarm.ts";
import type { Limits, StoredPause, Timed } from "./limits.ts";
import { calling, endOfTurn, olderThan, recordOf, type Turn, turnsIn } from "./turns.ts";

const database = "tollgate";
const store = "states";

/** How many times a decision is tried again: clearing the storage closes its connection, and may do so twice. */
const retries = 2;

/** How long a page decides by itself before it tries again to use the storage, in milliseconds. */
const retryAfter = 1_000;

/** How long a connection that no call uses stays open, in milliseconds. */
const idleTime = 10_000;

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
  /** Whether no call waits here. */
  #isResting = true;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;
  #hasSwept = false;
  /** When the storage could last not be used. */
  #failedAt = Number.NEGATIVE_INFINITY;
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
  async take(
    key: Key,
    cost: number,
    deadline: number,
    isWanted: () => boolean,
  ): Promise<Timed | StoredPause> {
    this.#isResting = false;
    this.#listen();
    const id = `${this.#states}\0${typeof key}\0${key}`;
    const holdId = this.#holdId(key);
    const turnsId = this.#turnsId(key);
    const taken = await this.#stored<StoredPause | Taken>(
      [id, holdId, turnsId],
      (states, [stored, hold, turns]) => {
        // Nothing is charged for a call that has left, however long the transactions of other tabs took.
        if (!isWanted()) return { pausedUntil: 0 };
        const now = this.#clock();
        const end = endOf(hold, now);
        if (end <= now && hold !== undefined) states.delete(holdId);
        // What a clock that stepped back has shortened stays so, for all pages.
        if (end > now && end < (hold as StoredHold).expiresAt)
          states.put({ ...(hold as StoredHold), expiresAt: end }, holdId);
        // A pause that another page stored is not longer here than this page's own `maxHold`.
        const pausedUntil = Math.min(end, end - (hold as StoredHold)?.length + this.#maxHold);
        if (pausedUntil > now) return { pausedUntil };
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
        const called = waits && yields ? calling(others, olderThan(mine, others), now) : others;
        replace(states, turnsId, turns, recordOf(waits ? [...called, { ...mine, due, yields }] : called));
        this.#since.set(key, decision.allowed ? now : since);
        if (waits) this.#waiting.add(key);
        else this.#waiting.delete(key);
        // Told once: two that yield to a third would wake each other again and again.
        const isNewYield = yields && !all.some((turn) => turn.id === this.#id && turn.yields);
        const isAwaited = decision.allowed && others.some((turn) => turn.yields);
        return { decision, now, tells: afresh || isNewYield || isAwaited || called !== others };
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
      const wait = Math.max(...older.map((turn) => endOfTurn(turn, now))) - now;
      return { ...peeked, decision: { ...peeked.decision, allowed: false, retryAfter: wait }, yields: true };
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
    if (this.#channel || this.#isAlone() || typeof BroadcastChannel === "undefined") return;
    this.#channel = new BroadcastChannel(`${database}:${this.#name}`);
    this.#channel.onmessage = ({ data }) => this.#changed(data?.key);
  }

  /** Has other tabs in which calls of a key wait ask again. */
  #tell(key: Key): void {
    this.#listen();
    this.#channel?.postMessage({ key });
    if (this.#isResting) this.rest();
  }

  /** Stops listening to other tabs, when no call waits, and soon closes the database. */
  rest(): void {
    this.#isResting = true;
    this.#channel?.close();
    this.#channel = undefined;
    clearTimeout(this.#idleTimer);
    if (!this.#opened) return;
    this.#idleTimer = setTimeout(() => this.#forget(), idleTime);
    // Where it keeps a process alive, it must not.
    (this.#idleTimer as unknown as { unref?(): void }).unref?.();
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
    clearTimeout(this.#idleTimer);
    for (let left = retries; !this.#isAlone(); left -= 1) {
      const connection = this.#open();
      try {
        const result = await transact(await connection, ids, decide);
        if (this.#isResting) this.rest();
        return result;
      } catch (error) {
        if (error instanceof TollgateError) throw error;
        this.#forget(connection);
        if (left > 0) continue;
        this.#failedAt = this.#clock();
        this.#warn("IndexedDB cannot be used here, so this page has a budget of its own.", error);
      }
    }
    return undefined;
  }

  /** Returns whether this page decides by itself. A clock that steps back does not make that longer. */
  #isAlone(): boolean {
    return this.#isClosed || Math.abs(this.#clock() - this.#failedAt) < retryAfter;
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
    this.#isClosed = true;
    this.#forget();
    this.rest();
  }

  #open(): Promise<IDBDatabase> {
    this.#opened ??= this.#connect();
    return this.#opened;
  }

  /** Closes a connection. The next decision opens another. */
  #forget(connection = this.#opened): void {
    if (this.#opened === connection) this.#opened = undefined;
    connection?.then(
      (opened) => opened.close(),
      () => {},
    );
  }

  async #connect(): Promise<IDBDatabase> {
    let opened = await open(database);
    if (!opened.objectStoreNames.contains(store)) {
      this.#warn("what was stored cannot be read, so the shared budget starts afresh.", opened.name);
      opened.close();
      // A connection of others may hold it open, so that it can neither be changed nor deleted.
      opened = await open(`${database}:${store}`);
    }
    const forget = () => {
      this.#forget();
      this.#changed();
    };
    // An open connection would block clearing the storage, or a newer page that needs another version.
    opened.onversionchange = () => {
      opened.close();
      forget();
    };
    opened.onclose = forget;
    // Once: an idle page opens the database again and again.
    if (!this.#hasSwept) removeEnded(opened, this.#clock());
    this.#hasSwept = true;
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
    const lost = () => reject(new DOMException("the storage was cleared", "AbortError"));
    const end = (settle: () => void) => {
      opened.removeEventListener("close", lost);
      settle();
    };
    const states = transaction.objectStore(store);
    const requests = ids.map((id) => states.get(id));
    let result: Result;
    let failure: unknown;
    // Requests succeed in order: after the last one, all have.
    (requests.at(-1) as IDBRequest).onsuccess = () => {
      try {
        const records = requests.map((request) => request.result);
        result = decide(states, records);
        // Others need not wait until this page has time to end it.
        transaction.commit?.();
      } catch (error) {
        failure = error;
        transaction.abort();
      }
    };
    // Resolved only after the write is complete.
    transaction.oncomplete = () => end(() => resolve(result));
    transaction.onabort = () => end(() => reject(failure ?? transaction.error));
    // When the storage is cleared, a transaction may neither complete nor abort.
    opened.addEventListener("close", lost);
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

function open(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(store);
  return finished(request);
}
