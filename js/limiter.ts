import { checkIsObject, checkKey, storedVersion } from "./checks.ts";
import { fullText, operation, status } from "./core/generated.ts";
import { Results } from "./core/results.ts";
import { outOfMemory, Slab } from "./core/slab.ts";
import { type CopiedStates, copiedStates, placed, saved, unreadableAs } from "./core/states.ts";
import { fill, inWords, TollgateError, wrongAmount } from "./error.ts";
import { storedKey } from "./keys.ts";
import { type ReadOptions, readOptions } from "./options.ts";
import { mismatch, ReadPolicies, readCall, tooSlow } from "./policies.ts";
import { type ReadSnapshot, readSnapshot } from "./snapshot.ts";
import { checkTime, invalidTime } from "./time.ts";
import type {
  Algorithm,
  Decision,
  Expired,
  Key,
  Options,
  Origin,
  Policies,
  Policy,
  Snapshot,
  StoredKey,
} from "./types.ts";

/**
 * A rate limiter in memory: synchronous, exact, and bounded. It starts no timer; expired keys are removed a few at a
 * time, as it is used.
 *
 * @example
 * ```ts
 * import { RateLimiter } from "tollgate";
 *
 * const limiter = new RateLimiter({ algorithm: "sliding_window", limit: 100, scale: "1m" });
 * const decision = limiter.hit("user:42");
 * if (!decision.allowed) console.log(`wait ${decision.retryAfter} ms`);
 * ```
 */
export class RateLimiter {
  /** Copies of the policies it was made with. */
  readonly policies: readonly Policy[];

  readonly #read: ReadPolicies;
  readonly #options: ReadOptions;
  readonly #clock: () => number;
  readonly #results: Results;
  #slab: Slab;
  #slots = new Map<Key, number>();
  #keys: (Key | undefined)[] = [];
  /**
   * Set while the wasm may have moved slots that the maps do not show yet: what an interrupted operation leaves undone,
   * the next one does.
   */
  #isUnsettled = false;
  /** The key whose operation moved them. */
  #moving: Key | undefined;
  #isDisposed = false;
  /** How many keys were evicted in instances of the wasm that are gone. */
  #evictedBefore = 0;
  #warned = false;

  constructor(policies: Policies, options: Options = {}) {
    this.#options = readOptions(options);
    this.#read = new ReadPolicies(policies);
    this.policies = this.#read.policies;
    this.#clock = this.#options.clock;
    this.#results = new Results(this.#read.names);
    this.#slab = this.#emptySlab();
  }

  /** How many keys it holds, expired ones that have not been cleaned away included. */
  get size(): number {
    if (this.#isDisposed) throw this.#failure(status.invalidHandle);
    return this.#slots.size;
  }

  /** How many keys with time left were evicted because the limiter was full. */
  get evicted(): number {
    return this.#evicted();
  }

  /**
   * Decides whether the key may act now, and takes `cost` if so.
   * A third argument gives other numbers for this call only: the same algorithm and `scale`, another limit, capacity or rate.
   *
   * @example
   * ```ts
   * import { RateLimiter } from "tollgate";
   *
   * const limiter = new RateLimiter({ algorithm: "token_bucket", capacity: 10, refillRate: 2 });
   * const paying = { algorithm: "token_bucket", capacity: 100, refillRate: 20 } as const;
   * limiter.hit("user:42");
   * limiter.hit("user:43", 5, paying);
   * ```
   */
  hit(key: Key, cost = 1, policies?: Policies): Decision {
    // Kept short, so that engines inline it into the caller's loop.
    if (policies !== undefined) return this.#hitWith(key, cost, policies, 0);
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    if (this.#isUnsettled || this.#slab.instance.broken) this.#prepare(now);
    // The slot is looked up last: the clock is not ours, and may have used the limiter.
    const slot = this.#slotOf(key);
    const { instance, index, generation } = this.#slab;
    let code: number;
    try {
      code = instance.exports.hit(index, generation, slot, cost, now);
    } catch (error) {
      instance.broken = true;
      throw error;
    }
    // Before any call, for which the stack may have no room.
    if (code >= 0 && (code & status.moved) !== 0) {
      this.#isUnsettled = true;
      this.#moving = key;
    }
    return this.#decision(code, cost, now);
  }

  /** Returns the decision of a hit, and changes nothing. */
  peek(key: Key, cost = 1, policies?: Policies): Decision {
    return this.#hitWith(key, cost, policies, 1);
  }

  /**
   * Adds to the count without asking, and returns it: what has happened is recorded, whether it fits or not.
   * With several policies, `policy` names the one that counts it.
   *
   * @example Counting only failures
   * ```ts
   * import { RateLimiter } from "tollgate";
   *
   * const failures = new RateLimiter({ algorithm: "fix_window", limit: 3, scale: "1m" });
   * if (failures.peek("login:42").allowed) failures.inc("login:42");
   * ```
   */
  inc(key: Key, cost = 1, policy?: string): number {
    return this.#count(operation.inc, key, cost, policy);
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. Returns the count. */
  set(key: Key, count: number, policy?: string): number {
    return this.#count(operation.set, key, count, policy);
  }

  /** Returns the key's count. */
  get(key: Key, policy?: string): number {
    return this.#count(operation.get, key, 0, policy);
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 when it has none. */
  expiresAt(key: Key, policy?: string): number {
    return this.#count(operation.expiresAt, key, 0, policy);
  }

  /** Forgets the key. Returns true if there was anything to forget. */
  reset(key: Key): boolean {
    this.#prepare(this.#now());
    const slot = this.#slotOf(key);
    const code = this.#slab.run(({ release }, index, generation) => release(index, generation, slot >>> 0));
    if (code < 0) throw this.#failure(code);
    if (slot < 0) return false;
    this.#forget(slot);
    return true;
  }

  /** Removes every expired key now, and returns how many there were. The only operation that looks at all keys. */
  clean(): number {
    const now = checkTime(this.#clock());
    this.#prepare(now);
    let removed = 0;
    // In parts, so that what is reported of a million keys is never in memory at once.
    for (let from = 0; from >= 0; ) {
      // Whoever is told what expired may have used the limiter.
      this.#prepare(now);
      // What was freed before it failed has to be forgotten as well.
      this.#isUnsettled = true;
      const next = this.#slab.run(({ clean }, index, generation) => clean(index, generation, now, from));
      const held = this.#slots.size;
      const expired = this.#takeMoves();
      const freed = held - this.#slots.size;
      removed += freed;
      this.#report(expired);
      // Without memory to report all of a part it goes on as long as it gets anywhere.
      if (next < 0 && freed === 0) throw this.#failure(next);
      if (next >= 0) from = next - 1;
    }
    return removed;
  }

  /**
   * Returns all states as plain data, for `JSON.stringify` or `structuredClone`; with a key, only that key's.
   *
   * @example
   * ```ts
   * import { RateLimiter } from "tollgate";
   *
   * const limiter = new RateLimiter({ algorithm: "fix_window", limit: 100, scale: "1h" });
   * limiter.hit("user:42");
   * const again = RateLimiter.restore(JSON.parse(JSON.stringify(limiter.snapshot())));
   * console.log(again.get("user:42")); // => 1
   * ```
   */
  snapshot(only?: Key): Snapshot {
    const now = checkTime(this.#clock());
    this.#prepare(now);
    const keys: (readonly [StoredKey, CopiedStates["states"]])[] = [];
    const rows: number[][] = [];
    const slots = only === undefined ? this.#slots : [[only, this.#slotOf(only)] as const];
    for (const [key, slot] of slots) {
      if (slot < 0) continue;
      const code = this.#slab.run(({ save }, index, generation) => save(index, generation, slot, now));
      if (code < 0) throw this.#failure(code);
      if (code === 0) continue;
      const { states, earlier } = saved(this.#slab.instance.list(), this.policies.length);
      for (const row of earlier) rows.push([keys.length, ...row]);
      keys.push([storedKey(key), states]);
    }
    return { version: storedVersion, policies: this.policies, keys, earlier: rows };
  }

  /**
   * Makes a limiter that goes on where a snapshot stopped. With other `policies` than the snapshot's, a changed limit or
   * rate applies to what is there, a changed `scale` or `per` is converted, and a changed algorithm starts afresh.
   */
  static restore(
    snapshot: Snapshot,
    options: Options & { readonly policies?: Policies | undefined } = {},
  ): RateLimiter {
    const read = readSnapshot(snapshot);
    checkIsObject(options);
    const made = new ReadPolicies(read.policies);
    const { policies = made.policies, ...rest } = options;
    const limiter = new RateLimiter(policies, rest);
    limiter.#takeOver(made.origins, read);
    return limiter;
  }

  /** Gives its memory back. A limiter that is simply dropped does so too, in time. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#slab.free();
    this.#slots = new Map();
    this.#keys = [];
    this.#isUnsettled = false;
  }

  #emptySlab(): Slab {
    return new Slab(this.#read, this.#options, this.#options.beforeClean !== undefined);
  }

  /** Decides a hit under the policies of this call, if it has any, or with `peek` only returns its decision. */
  #hitWith(key: Key, cost: number, policies: Policies | undefined, peek: 0 | 1): Decision {
    const read = policies === undefined ? undefined : readCall(policies);
    const call = read?.numbers ?? [];
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    this.#prepare(now);
    const slot = this.#slotOf(key);
    const { instance } = this.#slab;
    instance.writeCall(call);
    const count = call.length >> 2;
    const code = this.#slab.run(({ hit_with }, index, generation) =>
      hit_with(index, generation, slot, cost, now, count, peek),
    );
    if (code >= 0 && (code & status.moved) !== 0) {
      this.#isUnsettled = true;
      this.#moving = key;
    }
    if (code === status.mismatch) throw mismatch(this.#read, new ReadPolicies(read?.copies));
    if (code <= status.at) throw tooSlow(new ReadPolicies(read?.copies), code);
    return this.#decision(code, cost, now);
  }

  /** Does an operation on the count of one policy. */
  #count(kind: number, key: Key, amount: number, policy?: string): number {
    const position = this.#read.position(policy);
    const now = checkTime(this.#clock());
    if (typeof amount !== "number") throw this.#wrongAmount(kind, amount, position);
    this.#prepare(now);
    const slot = this.#slotOf(key);
    const number = this.#slab.run(({ count }, index, generation) =>
      count(index, generation, kind, slot, amount, now, position),
    );
    if (kind === operation.inc || kind === operation.set) {
      this.#isUnsettled = true;
      this.#moving = key;
    }
    if (number === status.invalidAmount) throw this.#wrongAmount(kind, amount, position);
    if (number < 0) throw this.#failure(number);
    if (this.#isUnsettled) this.#settle();
    return number;
  }

  #wrongAmount(kind: number, amount: unknown, position: number): TollgateError {
    if (kind !== operation.set) return wrongAmount("cost", amount);
    const most = this.#slab.run(({ count }, index, generation) =>
      count(index, generation, operation.maxCount, -1, 0, 0, position),
    );
    return wrongAmount("count", amount, most < 0 ? undefined : most);
  }

  #slotOf(key: Key): number {
    const slot = this.#slots.get(key);
    if (slot === undefined) {
      checkKey(key);
      return -1;
    }
    return slot;
  }

  /** Returns the decision behind a status. There is one return, so that a caller who only reads it costs no allocation. */
  #decision(code: number, cost: number, now: number): Decision {
    if (code < 0) throw this.#failure(code, cost, now);
    const decision = this.#results.decision(this.#slab.instance, code);
    // Most hits are of a key that has its slot already, and free none.
    if (this.#isUnsettled) this.#settle();
    return decision;
  }

  /** Returns the error behind a negative status. */
  #failure(code: number, cost?: unknown, now?: unknown): TollgateError {
    switch (code) {
      case status.invalidCost:
        return wrongAmount("cost", cost);
      case status.invalidTime:
        return invalidTime(now);
      case status.outOfMemory:
        return outOfMemory();
      case status.noRoom:
        return new TollgateError("full", fill(fullText, { found: this.#options.maxKeys }));
      default:
        return new TollgateError("disposed", "this limiter was disposed of; make a new one");
    }
  }

  #evicted(): number {
    if (this.#isDisposed) throw this.#failure(status.invalidHandle);
    const { instance, index, generation } = this.#slab;
    return this.#evictedBefore + instance.evicted(index, generation);
  }

  /** The time for an operation that needs none but to move to another instance. */
  #now(): number {
    return this.#slab.instance.broken ? checkTime(this.#clock()) : 0;
  }

  /** Settles what an interrupted operation left, and moves to another instance of the wasm if this one is broken. */
  #prepare(now: number): void {
    // Again, since whoever is told what expired may have used the limiter.
    do {
      if (this.#isDisposed) throw this.#failure(status.invalidHandle);
      if (this.#slab.instance.broken) this.#recover(now);
      if (this.#isUnsettled) this.#settle();
    } while (this.#isUnsettled || this.#isDisposed || this.#slab.instance.broken);
  }

  /** Takes over the slots that an operation on the moving key freed and took, and reports what expired. */
  #settle(): void {
    this.#report(this.#takeMoves());
  }

  /** Forgets the keys of freed slots, gives the moving key its slot, and returns what expired, policy by policy. */
  #takeMoves(): Expired[][] {
    const slab = this.#slab;
    const expired = this.#move(slab.moves());
    // Only now: an operation that is interrupted before leaves the moves to the next one.
    slab.run(({ settle }, index, generation) => settle(index, generation));
    this.#isUnsettled = false;
    this.#moving = undefined;
    return expired;
  }

  /** Brings the maps up to date with the slots that moved. It may be done again for the same moves. */
  #move(list: readonly number[]): Expired[][] {
    const [taken = -1, count = 0] = list;
    const expired = this.#options.beforeClean === undefined ? [] : this.#expired(list, 2 + count);
    for (let at = 2; at < 2 + count; at++) this.#forget(list[at] as number);
    if (taken >= 0 && this.#moving !== undefined) {
      this.#slots.set(this.#moving, taken);
      this.#keys[taken] = this.#moving;
    }
    return expired;
  }

  #forget(slot: number): void {
    const key = this.#keys[slot];
    if (key === undefined) return;
    if (this.#slots.get(key) === slot) this.#slots.delete(key);
    this.#keys[slot] = undefined;
  }

  #expired(list: readonly number[], from: number): Expired[][] {
    const { names } = this.#read;
    const byPolicy: Expired[][] = names.map(() => []);
    for (let at = from; at < list.length; at += 4) {
      const [slot, position, value, expiredAt] = list.slice(at, at + 4) as [number, number, number, number];
      const policy = names[position] as string;
      const key = this.#keys[slot];
      if (key !== undefined) byPolicy[position]?.push({ key, policy, value, expiredAt });
    }
    return byPolicy;
  }

  #report(expired: readonly Expired[][]): void {
    for (const [position, entries] of expired.entries()) {
      if (entries.length === 0) continue;
      try {
        this.#options.beforeClean?.(this.#read.origins[position]?.algorithm as Algorithm, entries);
      } catch (error) {
        if (!this.#warned)
          console.warn("tollgate: beforeClean threw; the entries are removed all the same.", error);
        this.#warned = true;
      }
    }
  }

  /** Reads all states into an empty limiter, or on an error none. */
  #takeOver(origins: readonly Origin[], { keys, earlier: rows }: ReadSnapshot): void {
    const now = checkTime(this.#clock());
    const { origins: own } = this.#read;
    const afresh = new Set<string>();
    const all = keys.map(([key, lists], at) => {
      const states = copiedStates(lists, origins.length, inWords(key));
      const earlier = rows.get(at) ?? [];
      return [key, placed({ states, earlier }, origins, own, afresh, inWords(key))] as const;
    });
    for (const [key, numbers] of all) this.#load(this.#slab, -1, key, numbers, now, false);
    for (const name of afresh)
      console.warn(`tollgate: the policy ${name} starts afresh; the snapshot has another algorithm for it.`);
    for (const [key, numbers] of all) {
      this.#load(this.#slab, this.#slotOf(key), key, numbers, now, true);
      this.#isUnsettled = true;
      this.#moving = key;
      this.#settle();
    }
  }

  /** Reads one key's states into a slot; without `put` it only checks them. */
  #load(slab: Slab, slot: number, key: Key, numbers: readonly number[], now: number, put: boolean): void {
    const code = slab.load(slot, now, numbers, put);
    if (code <= status.at) throw unreadableAs(this.#read.origins[status.at - code] as Origin, inWords(key));
    if (code < 0) throw this.#failure(code);
  }

  /**
   * Moves all states from a broken instance of the wasm to the one in use. Keys whose states cannot be read there start
   * afresh, and the limiter says so once.
   */
  #recover(now: number): void {
    checkTime(now);
    const rescued = this.#rescued();
    const fresh = this.#emptySlab();
    const slots = new Map<Key, number>();
    const keys: Key[] = [];
    let lost = rescued === undefined;
    for (const [key, numbers] of rescued?.states ?? []) {
      if (fresh.load(-1, now, numbers, true) < 0) {
        lost = true;
        continue;
      }
      const [taken = -1] = fresh.takeMoves();
      if (taken < 0) continue;
      slots.set(key, taken);
      keys[taken] = key;
    }
    // Nothing fails from here on. Before, the next operation tries again: a stack is not exhausted for ever.
    this.#evictedBefore += rescued?.evicted ?? 0;
    this.#slab = fresh;
    this.#slots = slots;
    this.#keys = keys;
    this.#isUnsettled = false;
    this.#report(rescued?.expired ?? []);
    if (lost)
      throw new TollgateError(
        "state_lost",
        "states of this limiter were lost in a trap; those keys start afresh",
      );
  }

  /** Copies everything out of a broken instance; `undefined` if that traps. */
  #rescued(): Rescued | undefined {
    const { instance, index, generation } = this.#slab;
    const { origins } = this.#read;
    try {
      instance.revive();
      const expired = this.#move(instance.moves(index, generation));
      const states = Array.from(this.#slots, ([key, slot]) => {
        const copied = instance.rescued(index, generation, slot, origins.length);
        return [key, placed(copied, origins, origins, new Set())] as const;
      });
      return { expired, states, evicted: instance.evicted(index, generation) };
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) return undefined;
      throw error;
    }
  }
}

/** What was copied out of a broken instance. */
interface Rescued {
  readonly expired: Expired[][];
  readonly states: readonly (readonly [Key, readonly number[]])[];
  readonly evicted: number;
}

/** Returns the error for a cost or a time that is not even a number. */
const notNumbers = (cost: unknown, now: unknown): TollgateError =>
  typeof cost === "number" ? invalidTime(now) : wrongAmount("cost", cost);
