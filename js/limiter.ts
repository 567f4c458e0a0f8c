import type { Core } from "../build/js/tollgate_bg.js";
import { checkIsObject, checkKey, checkOptions, checkSnapshot } from "./checks.ts";
import { Area, besides, freedBit, markedIfFull, takenBit } from "./core/area.ts";
import { failure, isTime, made, notNumbers } from "./core/failure.ts";
import { flat, lists } from "./core/states.ts";
import { between, fields } from "./core/text.ts";
import { rust } from "./core/wasm.ts";
import { refused, TollgateError } from "./error.ts";
import { keyFrom, storedKey } from "./keys.ts";
import { type ReadPolicies, readPolicies } from "./policies.ts";
import type {
  Algorithm,
  Decision,
  Expired,
  Key,
  Options,
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

  #core: Core;
  #read: ReadPolicies;
  #area: Area;
  #clock: () => number;
  #slots = new Map<Key, number>();
  #keys: (Key | undefined)[] = [];
  #beforeClean: Options["beforeClean"];
  #warned = false;

  constructor(policies: Policies, options: Options = {}) {
    checkOptions(options);
    const { clock = Date.now, beforeClean, ...rest } = options;
    this.#read = readPolicies(policies);
    this.policies = Array.isArray(policies) ? policies : [policies as Policy];
    this.#beforeClean = beforeClean;
    this.#core = made(rust().Core.make(this.#read.set, fields(rest), beforeClean !== undefined));
    this.#area = new Area(this.#core.area(), this.#read.names);
    this.#clock = clock;
  }

  /** How many keys it holds, expired ones that have not been cleaned away included. */
  get size(): number {
    return this.#slots.size;
  }

  /** How many keys with time left were pushed out because the limiter was full. */
  get evicted(): number {
    return this.#core.evicted();
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
    const call = policies === undefined ? undefined : readPolicies(policies).set;
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    // The slot is looked up last: the clock is not ours, and may have used the limiter.
    const slot = this.#slotOf(key);
    const status =
      call === undefined ? this.#core.hit(slot, cost, now) : this.#core.hit_with(slot, cost, now, call);
    // Most hits are of a key that has its slot already, and free none.
    return (status & besides) === 0 ? this.#area.decision(status) : this.#unusual(status, key, cost, now);
  }

  /** What a hit would answer. Changes nothing. */
  peek(key: Key, cost = 1, policies?: Policies): Decision {
    const call = policies === undefined ? undefined : readPolicies(policies).set;
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    const slot = this.#slotOf(key);
    const status =
      call === undefined ? this.#core.peek(slot, cost, now) : this.#core.peek_with(slot, cost, now, call);
    return this.#unusual(status, key, cost, now);
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
    return this.#number(key, cost, (slot, now) => this.#core.inc(slot, cost, now, position));
  }

  /** Makes the key as if `count` had just been used, or leaves it `count` tokens. Answers the count. */
  set(key: Key, count: number, policy?: string): number {
    const position = this.#read.position(policy);
    if (!Number.isSafeInteger(count) || count < 0) {
      throw refused("invalid_count", "count", count, `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);
    }
    return this.#number(key, count, (slot, now) => this.#core.set(slot, count, now, position));
  }

  /** The key's count. */
  get(key: Key, policy?: string): number {
    const position = this.#read.position(policy);
    return this.#number(key, 0, (slot, now) => this.#core.get(slot, now, position));
  }

  /** When the key's state ends, in milliseconds since the epoch; 0 when it has none. */
  expiresAt(key: Key, policy?: string): number {
    const position = this.#read.position(policy);
    return this.#number(key, 0, (slot, now) => this.#core.expires_at(slot, now, position));
  }

  /** Forgets the key. Says whether there was anything to forget. */
  reset(key: Key): boolean {
    const slot = this.#slotOf(key);
    if (slot < 0) return false;
    this.#core.release(slot);
    this.#forget(slot);
    return true;
  }

  /** Removes every expired key now, and answers how many there were. The only operation that looks at all keys. */
  clean(): number {
    const now = this.#clock();
    if (typeof now !== "number") throw notNumbers(0, now);
    const status = this.#core.clean(now);
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
   * console.log(again.get("user:42")); // 1
   * ```
   */
  snapshot(): Snapshot {
    const now = this.#clock();
    if (!isTime(now)) throw notNumbers(0, now);
    const keys: [StoredKey, number[][]][] = [];
    for (const [key, slot] of this.#slots) {
      const states = lists(this.#core.export(slot, now));
      if (states.length > 0) keys.push([storedKey(key), states]);
    }
    return { version: 1, policies: this.policies, keys };
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
    if (this.#core === disposed) return;
    this.#core.free();
    this.#core = disposed as Core;
    this.#slots = disposed as Map<Key, number>;
    this.#keys = [];
  }

  #slotOf(key: Key): number {
    const slot = this.#slots.get(key);
    if (slot === undefined) {
      checkKey(key);
      return -1;
    }
    return slot;
  }

  /** The rest of an operation that failed, took a slot, freed some, or found no room. */
  #unusual(status: number, key: Key, cost: number, now: number): Decision {
    if (status < 0) throw failure(status, cost, now);
    const decision = markedIfFull(status, this.#area.decision(status));
    this.#settle(status, key);
    return decision;
  }

  /** An operation that answers a single number. */
  #number(key: Key, cost: number, work: (slot: number, now: number) => number): number {
    const now = this.#clock();
    if (typeof cost !== "number" || typeof now !== "number") throw notNumbers(cost, now);
    const status = work(this.#slotOf(key), now);
    if (status < 0) throw failure(status, cost, now);
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
    const slots = this.#core.take_freed();
    const expired = this.#beforeClean === undefined ? [] : this.#expired(this.#core.take_expired());
    for (const slot of slots) this.#forget(slot);
    return expired;
  }

  #forget(slot: number): void {
    this.#slots.delete(this.#keys[slot] as Key);
    this.#keys[slot] = undefined;
  }

  #expired(numbers: Float64Array): Expired[][] {
    const { names } = this.#read;
    const byPolicy: Expired[][] = names.map(() => []);
    for (let at = 0; at < numbers.length; at += 4) {
      const [slot, position, value, expiredAt] = numbers.subarray(at, at + 4) as ArrayLike<number> as [
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
    const { set } = readPolicies(policies);
    const all = keys.map(([key, states]) => [keyFrom(key), flat(states)] as const);
    const afresh = new Set(
      all.flatMap(([, states]) => made(this.#core.check(set, states, now)).split(between)),
    );
    for (const name of afresh) {
      if (name)
        console.warn(
          `tollgate: the policy ${name} starts afresh; the snapshot has another algorithm for it.`,
        );
    }
    for (const [key, states] of all) {
      const status = this.#core.import(this.#slotOf(key), set, states, now);
      if (status < 0) throw failure(status, 0, now);
      this.#settle(status, key);
    }
  }
}

/** What a limiter turns into when it is disposed of: everything about it says so. */
const disposed = new Proxy({} as Core | Map<Key, number>, {
  get() {
    throw new TollgateError("disposed", "this limiter was disposed of; make a new one");
  },
});
