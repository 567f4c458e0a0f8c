import { checkIsObject, checkKey, checkSnapshot } from "./checks.ts";
import { Area, freedBit, takenBit } from "./core/area.ts";
import { answered, giveNumbers, numbers } from "./core/border.ts";
import type { Exports } from "./core/exports.ts";
import { failed, failure, isTime, noRoom, notNumbers } from "./core/failure.ts";
import { held } from "./core/held.ts";
import { lists, placed, unreadableAs } from "./core/states.ts";
import { dropped, dropWith, rust } from "./core/wasm.ts";
import { inWords, TollgateError, wrongAmount } from "./error.ts";
import { keyFrom, storedKey } from "./keys.ts";
import { isWhole } from "./numbers.ts";
import { readOptions } from "./options.ts";
import { mismatch, type ReadPolicies, readPolicies } from "./policies.ts";
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
 * A rate limiter in memory: synchronous, exact, and bounded. It starts no timer; expired keys go a few at a time, as it is used.
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
  /** The policies it was made with. */
  readonly policies: readonly Policy[];

  #rust = rust();
  readonly #slab: number;
  readonly #maxKeys: number;
  #read: ReadPolicies;
  #area: Area;
  #clock: () => number;
  #slots = new Map<Key, number>();
  #keys: (Key | undefined)[] = [];
  #beforeClean: Options["beforeClean"];
  #warned = false;

  constructor(policies: Policies, options: Options = {}) {
    const numbers = readOptions(options);
    const { clock = Date.now, beforeClean } = options;
    this.#read = readPolicies(policies);
    this.policies = Array.isArray(policies) ? policies : [policies as Policy];
    this.#beforeClean = beforeClean;
    const { slab, drop_slab: drop } = this.#rust;
    const made = slab(held(this.#read), beforeClean === undefined ? 0 : 1, 0, ...numbers);
    this.#slab = made;
    this.#maxKeys = numbers[0];
    dropWith(this, () => drop(made));
    this.#area = new Area(this.#read.names);
    this.#clock = clock;
  }

  /** How many keys it holds, expired ones that have not been cleaned away included. */
  get size(): number {
    return this.#slots.size;
  }

  /** How many keys with time left were pushed out because the limiter was full. */
  get evicted(): number {
    return this.#rust.evicted(this.#slab);
  }

  /**
   * Asks whether the key may act now, and takes `cost` if so.
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
    if (policies !== undefined) return this.#ask(key, cost, policies, 1);
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    // The slot is looked up last: the clock is not ours, and may have used the limiter.
    const slot = this.#slotOf(key);
    return this.#answer(this.#rust.hit(this.#slab, slot, cost, now), key, cost, now);
  }

  /** What a hit would answer. Changes nothing. */
  peek(key: Key, cost = 1, policies?: Policies): Decision {
    return this.#ask(key, cost, policies, 0);
  }

  /**
   * Adds without asking, and answers the count: what has happened is recorded, whether it fits or not.
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
    const position = this.#read.position(policy);
    return this.#number(key, cost, (slot, now) => this.#rust.inc(this.#slab, slot, cost, now, position));
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. Answers the count. */
  set(key: Key, count: number, policy?: string): number {
    const position = this.#read.position(policy);
    if (!isWhole(count)) throw wrongAmount("count", count);
    return this.#number(key, count, (slot, now) => this.#rust.set(this.#slab, slot, count, now, position));
  }

  /** The key's count. */
  get(key: Key, policy?: string): number {
    const position = this.#read.position(policy);
    return this.#number(key, 0, (slot, now) => this.#rust.get(this.#slab, slot, now, position, 0));
  }

  /** When the key's state ends, in milliseconds since the epoch; 0 when it has none. */
  expiresAt(key: Key, policy?: string): number {
    const position = this.#read.position(policy);
    return this.#number(key, 0, (slot, now) => this.#rust.get(this.#slab, slot, now, position, 1));
  }

  /** Forgets the key. Says whether there was anything to forget. */
  reset(key: Key): boolean {
    const slot = this.#slotOf(key);
    if (slot < 0) return false;
    this.#rust.release(this.#slab, slot);
    this.#forget(slot);
    return true;
  }

  /** Removes every expired key now, and answers how many there were. The only operation that looks at all keys. */
  clean(): number {
    const now = this.#clock();
    if (typeof now !== "number") throw notNumbers(0, now);
    const status = this.#rust.clean(this.#slab, now);
    if (status < 0) throw failure(status, 0, now);
    const removed = this.#area.number();
    if ((status & freedBit) !== 0) this.#tell(this.#takeFreed());
    return removed;
  }

  /**
   * All states as plain data, for `JSON.stringify` or `structuredClone`.
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
  snapshot(): Snapshot {
    const now = this.#clock();
    if (!isTime(now)) throw notNumbers(0, now);
    const keys: [StoredKey, number[][]][] = [];
    for (const [key, slot] of this.#slots) {
      this.#rust.save(this.#slab, slot, now);
      const states = lists(numbers());
      if (states.length > 0) keys.push([storedKey(key), states]);
    }
    return { version: 2, policies: this.policies, keys };
  }

  /**
   * A limiter that goes on where a snapshot stopped. With other `policies` than the snapshot's, a changed limit or
   * rate applies to what is there, a changed `scale` or `per` is converted, and a changed algorithm starts afresh.
   */
  static restore(
    snapshot: Snapshot,
    options: Options & { readonly policies?: Policies | undefined } = {},
  ): RateLimiter {
    checkSnapshot(snapshot);
    checkIsObject(options);
    const { policies = snapshot.policies, ...rest } = options;
    const limiter = new RateLimiter(policies, rest);
    limiter.#takeOver(snapshot);
    return limiter;
  }

  /** Gives its memory back. A limiter that is simply dropped does so too, in time. */
  [Symbol.dispose](): void {
    if (this.#rust === disposed) return;
    this.#rust.drop_slab(this.#slab);
    dropped(this);
    this.#rust = disposed as Exports;
    this.#slots = disposed as Map<Key, number>;
    this.#keys = [];
  }

  /** A hit under the policies of this call, if it has any; or what it would answer. */
  #ask(key: Key, cost: number, policies: Policies | undefined, takes: number): Decision {
    const call = policies === undefined ? 0 : held(readPolicies(policies));
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    const status = this.#rust.hit_with(this.#slab, this.#slotOf(key), cost, now, call, takes);
    return this.#answer(status, key, cost, now, policies);
  }

  #slotOf(key: Key): number {
    const slot = this.#slots.get(key);
    if (slot === undefined) {
      checkKey(key);
      return -1;
    }
    return slot;
  }

  /** The decision that an operation came to. There is one return, so that a caller who only reads it costs no allocation. */
  #answer(status: number, key: Key, cost: number, now: number, policies?: Policies): Decision {
    if (status < 0) throw this.#failure(status, cost, now, policies);
    const decision = this.#area.decision(status);
    // Most hits are of a key that has its slot already, and free none.
    if ((status & (freedBit | takenBit)) !== 0) this.#settle(status, key);
    return decision;
  }

  /** The error behind a negative status. */
  #failure(status: number, amount: number, now: number, policies?: Policies): TollgateError {
    if (status === noRoom)
      return new TollgateError(
        "full",
        `the limiter is full: maxKeys is ${this.#maxKeys}, and onFull is deny`,
      );
    if (status !== failed) return failure(status, amount, now);
    return policies === undefined
      ? wrongAmount("count", amount, answered())
      : mismatch(this.#read, readPolicies(policies));
  }

  /** An operation that answers a single number. */
  #number(key: Key, cost: number, work: (slot: number, now: number) => number): number {
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    const status = work(this.#slotOf(key), now);
    if (status < 0) throw this.#failure(status, cost, now);
    const number = this.#area.number();
    this.#settle(status, key);
    return number;
  }

  /** Forgets the keys of freed slots, and only then gives the key of this operation its slot. */
  #settle(status: number, key: Key): void {
    const slot = (status & takenBit) === 0 ? -1 : this.#area.slot();
    const expired = (status & freedBit) === 0 ? [] : this.#takeFreed();
    if (slot >= 0) {
      this.#slots.set(key, slot);
      this.#keys[slot] = key;
    }
    this.#tell(expired);
  }

  /** Forgets the keys of freed slots. Answers what they held, policy by policy, if anyone asks. */
  #takeFreed(): Expired[][] {
    this.#rust.take_freed(this.#slab);
    const [count, ...list] = numbers() as [number, ...number[]];
    const expired = this.#beforeClean === undefined ? [] : this.#expired(list.slice(count));
    for (const slot of list.slice(0, count)) this.#forget(slot);
    return expired;
  }

  #forget(slot: number): void {
    this.#slots.delete(this.#keys[slot] as Key);
    this.#keys[slot] = undefined;
  }

  #expired(numbers: readonly number[]): Expired[][] {
    const { names } = this.#read;
    const byPolicy: Expired[][] = names.map(() => []);
    for (let at = 0; at < numbers.length; at += 4) {
      const [slot, position, value, expiredAt] = numbers.slice(at, at + 4) as [
        number,
        number,
        number,
        number,
      ];
      const policy = names[position] as string;
      byPolicy[position]?.push({ key: this.#keys[slot] as Key, policy, value, expiredAt });
    }
    return byPolicy;
  }

  #tell(expired: readonly Expired[][]): void {
    for (const [position, entries] of expired.entries()) {
      if (entries.length === 0) continue;
      try {
        this.#beforeClean?.(this.policies[position]?.algorithm as Algorithm, entries);
      } catch (error) {
        if (!this.#warned)
          console.warn("tollgate: beforeClean threw; the entries are removed all the same.", error);
        this.#warned = true;
      }
    }
  }

  /** Takes over all of a snapshot, or on a mistake none. */
  #takeOver({ policies, keys }: Snapshot): void {
    const now = this.#clock();
    if (typeof now !== "number") throw notNumbers(0, now);
    const { origins: own } = this.#read;
    const { origins } = readPolicies(policies);
    const afresh = new Set<string>();
    const whose = (key: Key) => ` of ${inWords(key)}`;
    const all = keys.map(([stored, states]) => {
      const key = keyFrom(stored);
      return [key, placed(states, origins, own, afresh, whose(key))] as const;
    });
    const load = (key: Key, slot: number, states: readonly number[], puts: number) => {
      giveNumbers(states);
      const status = this.#rust.load(this.#slab, slot, now, puts);
      if (status === failed) throw unreadableAs(own[answered()] as Origin, whose(key));
      if (status < 0) throw this.#failure(status, 0, now);
      return status;
    };
    for (const [key, states] of all) load(key, -1, states, 0);
    for (const name of afresh)
      console.warn(`tollgate: the policy ${name} starts afresh; the snapshot has another algorithm for it.`);
    for (const [key, states] of all) this.#settle(load(key, this.#slotOf(key), states, 1), key);
  }
}

/** What a limiter turns into when it is disposed of: everything about it says so. */
const disposed = new Proxy({} as Exports | Map<Key, number>, {
  get() {
    throw new TollgateError("disposed", "this limiter was disposed of; make a new one");
  },
});
