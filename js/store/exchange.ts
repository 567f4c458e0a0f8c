import { deadline } from "../deadline.ts";
import { TollgateError } from "../errors/error.ts";
import type { Outage } from "../events/outage.ts";
import type { Ledger } from "../limiter/ledger.ts";
import { checkTime } from "../time.ts";
import { contended, failed, late, notBoolean, ofKey } from "./errors.ts";
import type { ReadStoreOptions } from "./options.ts";
import type { StoreStats } from "./types.ts";
import { newTag, parsedValue, valueText } from "./value.ts";

/** An operation on the loaded states of a key. It may be performed several times, on different states. */
export type Work<Result = unknown> = (ledger: Ledger, now: number) => Result;

/** Counters that the exchange updates. */
export type Counters = { -readonly [Name in keyof StoreStats]: StoreStats[Name] };

/** An operation that waits for its result. */
interface Task {
  readonly work: Work;
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
  /** Prevents that it is late. */
  prevent: () => void;
  /** True if the caller has a result or an error. */
  isDone: boolean;
}

/** The operations of one key: those under way, and those that wait for them. */
interface KeyQueue {
  readonly pending: Task[];
  /** Operations that are performed together, with one swap. */
  batch: readonly Task[];
  /** Begins the next batch, also if a call of this one never ends. */
  release: () => void;
}

/** The most operations that share a swap, so that no batch blocks the process for long. */
const maxBatch = 1_000;

/** The latest time of a JavaScript date. A store may compute a date from a ttl. */
const maxTime = 8.64e15;

/**
 * Performs operations on the keys of a store. Each key has one batch under way; operations that come meanwhile share the
 * next one, so a process never competes with itself.
 */
export class Exchange {
  readonly #options: ReadStoreOptions;
  readonly #ledger: Ledger;
  readonly #counters: Counters;
  readonly #outage: Outage;
  readonly #queues = new Map<string, KeyQueue>();

  constructor(options: ReadStoreOptions, ledger: Ledger, counters: Counters, outage: Outage) {
    this.#options = options;
    this.#outage = outage;
    this.#ledger = ledger;
    this.#counters = counters;
  }

  /** Performs an operation on a key of the store. */
  perform<Result>(key: string, work: Work<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const known = this.#queues.get(key);
      const queue = known ?? { pending: [], batch: [], release: () => {} };
      const task: Task = { work, resolve, reject, prevent: () => {}, isDone: false };
      this.#counters.operations++;
      queue.pending.push(task);
      this.#queues.set(key, queue);
      task.prevent = deadline(this.#options.timeout, () => this.#timeOut(key, queue, task));
      if (known === undefined) void this.#run(key, queue);
    });
  }

  /** Performs one batch after the other. */
  async #run(key: string, queue: KeyQueue): Promise<void> {
    // The operations of one tick share the first batch.
    await undefined;
    while (queue.pending.length > 0) {
      const batch = queue.pending.splice(0, maxBatch);
      queue.batch = batch;
      const released = new Promise<void>((resolve) => {
        queue.release = resolve;
      });
      const ended = this.#exchange(key, batch).catch((error) => {
        for (const task of batch) this.#reject(task, error);
      });
      await Promise.race([ended, released]);
    }
    this.#queues.delete(key);
  }

  /** Loads the states of a key, performs the operations of a batch, and swaps the value, until that succeeds. */
  async #exchange(key: string, batch: readonly Task[]): Promise<void> {
    let own:
      | { readonly tag: string; readonly deletes: boolean; readonly results: readonly Outcome[] }
      | undefined;
    for (let tries = 1; ; tries++) {
      const before = await this.#get(key);
      const { state, tag } = parsedValue(key, before);
      // The store did swap, though it returned false: its client sent the call twice. A value that was to be deleted and is gone
      // leaves the key as these operations do, whoever deleted it.
      if (own !== undefined && (tag === own.tag || (own.deletes && before === null)))
        return this.#finish(own.results);
      // Callers that were told of a failure do not expect their operations to be performed later.
      const tasks = batch.filter(({ isDone }) => !isDone);
      if (tasks.length === 0) return;
      const now = checkTime(this.#options.clock());
      const results = this.#decide(key, state, tasks, now);
      const saved = this.#ledger.save(now);
      if (!saved.changed) return this.#finish(results);
      own = { tag: newTag(), deletes: saved.state === null, results };
      const after = saved.state === null ? null : valueText(saved.state, own.tag);
      const ttl = saved.state === null ? 0 : Math.ceil(Math.min(saved.expiresAt, maxTime) - now);
      if (await this.#swap(key, before, after, Math.max(ttl, after === null ? 0 : 1)))
        return this.#finish(results);
      this.#counters.conflicts++;
      if (tries >= this.#options.maxTries) throw contended(key, tries);
      await pause(tries);
    }
  }

  /** Performs operations on a stored state. An operation that is rejected changes nothing, and the others go on. */
  #decide(
    key: string,
    state: Parameters<Ledger["load"]>[1],
    tasks: readonly Task[],
    now: number,
  ): readonly Outcome[] {
    try {
      this.#ledger.load(now, state);
    } catch (error) {
      throw error instanceof TollgateError ? ofKey(key, error) : error;
    }
    return tasks.map((task) => {
      try {
        return { task, result: task.work(this.#ledger, now) };
      } catch (error) {
        // Any other error is a trap of the wasm, which ends the ledger's states.
        if (!(error instanceof TollgateError)) throw error;
        return { task, error };
      }
    });
  }

  async #get(key: string): Promise<string | null> {
    this.#counters.gets++;
    try {
      const text = ((await this.#options.store.get(key)) ?? null) as string | null;
      this.#outage.responded();
      return text;
    } catch (error) {
      throw failed(key, "get", error);
    }
  }

  async #swap(key: string, before: string | null, after: string | null, ttl: number): Promise<boolean> {
    this.#counters.swaps++;
    let swapped: unknown;
    try {
      swapped = await this.#options.store.swap(key, before, after, ttl);
    } catch (error) {
      throw failed(key, "swap", error);
    }
    if (typeof swapped !== "boolean") throw notBoolean(swapped);
    return swapped;
  }

  #finish(outcomes: readonly Outcome[]): void {
    for (const { task, error, result } of outcomes) {
      if (error !== undefined) this.#reject(task, error);
      else if (!task.isDone) {
        this.#end(task);
        task.resolve(result as never);
      }
    }
  }

  #reject(task: Task, error: unknown): void {
    if (task.isDone) return;
    this.#end(task);
    this.#counters.failed++;
    task.reject(error);
  }

  #end(task: Task): void {
    task.isDone = true;
    task.prevent();
  }

  #timeOut(key: string, queue: KeyQueue, task: Task): void {
    this.#reject(task, late(key, this.#options.timeout));
    const position = queue.pending.indexOf(task);
    if (position >= 0) queue.pending.splice(position, 1);
    // A call that never ends does not block the key.
    else if (queue.batch.every(({ isDone }) => isDone)) queue.release();
  }
}

/** The result of an operation, or its error. */
interface Outcome {
  readonly task: Task;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** The longest pause between two tries, in milliseconds. */
const maxPause = 32;

/** Waits for a random time, longer after more tries, so that processes do not all try again at once. */
const pause = (tries: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(2 ** (tries - 1), maxPause)));
