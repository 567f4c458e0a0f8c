import { checkIsObject, checkKey, copiedOptions, storedVersion } from "./checks.ts";
import {
  fullText,
  operation,
  question,
  reserveOnlyText,
  schema,
  settlements,
  status,
} from "./core/generated.ts";
import { Results } from "./core/results.ts";
import { outOfMemory, Slab } from "./core/slab.ts";
import { type CopiedStates, copiedStates, placed, saved, unreadableAs } from "./core/states.ts";
import { costsByPosition, usedByPosition } from "./costs.ts";
import { ttlExpected } from "./durations.ts";
import { fill, inWords, refused, TollgateError, wrongAmount, wrongInc } from "./error.ts";
import { storedKey } from "./keys.ts";
import { type ReadOptions, readOptions, readReserveOptions, readTtl } from "./options.ts";
import { mismatch, ReadPolicies, readCall, tooSlow } from "./policies.ts";
import { Reservation } from "./reservation.ts";
import { idText, parsedId, randomBits } from "./reservation-id.ts";
import { type ReadSnapshot, readSnapshot } from "./snapshot.ts";
import { checkTime, invalidTime } from "./time.ts";
import type {
  Algorithm,
  Costs,
  Decision,
  Duration,
  Expired,
  Extension,
  Key,
  Options,
  Origin,
  Policies,
  Policy,
  ReserveOptions,
  Settlement,
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
  #ttl: number | undefined;

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
   * Decides whether the key may act now, and takes `cost` if so: one number, or one for each policy by its name.
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
  hit(key: Key, cost: Costs = 1, policies?: Policies): Decision {
    // Kept short, so that engines inline it into the caller's loop.
    if (policies !== undefined || typeof cost !== "number")
      return this.#hitWith(key, cost, policies, question.hit);
    const now = this.#clock();
    if (typeof now !== "number") throw invalidTime(now);
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
  peek(key: Key, cost: Costs = 1, policies?: Policies): Decision {
    return this.#hitWith(key, cost, policies, question.peek);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its `ttl`
   * ends and it is charged in full. Nothing is charged before.
   *
   * @example Tokens that are known only afterwards, and a limit on what runs at the same time
   * ```ts
   * import { RateLimiter } from "tollgate";
   *
   * const limiter = new RateLimiter([
   *   { name: "rpm", algorithm: "sliding_window", limit: 60, scale: "1m" },
   *   { name: "tpm", algorithm: "sliding_window", limit: 90000, scale: "1m" },
   *   { name: "running", algorithm: "concurrency", limit: 5 },
   * ]);
   * const reservation = limiter.reserve("user:42", { tpm: 4000 }, { ttl: "2m" });
   * if (reservation.allowed) reservation.settle({ tpm: 1234 });
   * console.log(limiter.get("user:42", "tpm")); // => 1234
   * ```
   */
  reserve(key: Key, cost: Costs = 1, options: ReserveOptions = {}): Reservation {
    const { ttl, policies } = readReserveOptions(options);
    const isByPolicy = typeof cost !== "number";
    const reserved = { bits: randomBits(), ttl: ttl ?? this.#defaultTtl(), end: 0 };
    const decision = this.#hitWith(key, cost, policies, question.reserve, reserved);
    const { bits, end } = reserved;
    const id = decision.allowed ? idText({ key, bits, end, isByPolicy }) : "";
    return new Reservation(this.#settling, key, decision, id, decision.allowed ? end : 0);
  }

  /**
   * Closes a reservation by its id and charges what was used; by default all of it. Returns `"settled"`, `"expired"` (it
   * had been charged in full) or `"closed"` (it had been settled).
   */
  settle(id: string, used?: Costs): Settlement {
    return this.#close(id, (isByPolicy) => usedByPosition(used, this.#read, isByPolicy)) as Settlement;
  }

  /** Closes a reservation by its id without charging anything. */
  cancel(id: string): Settlement {
    return this.settle(id, 0);
  }

  /** Moves the end of a reservation, by its id, to so long from now. */
  extend(id: string, ttl: Duration): Extension {
    const extended = this.#extendUntil(id, ttl);
    return typeof extended === "number" ? "extended" : extended;
  }

  /**
   * Adds to the count without asking, and returns it: what has happened is recorded, whether it fits or not. A negative
   * cost gives back, down to nothing used; a window does not restart.
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

  /**
   * Forgets what the key used, and returns true if there was anything to forget. Reservations stay open, unless
   * `reservations` says to drop them.
   */
  reset(key: Key, options: { readonly reservations?: boolean | undefined } = {}): boolean {
    const { reservations = false } = copiedOptions(options, ["reservations"]);
    if (typeof reservations !== "boolean")
      throw refused("invalid_option", "reservations", reservations, "a boolean");
    const now = checkTime(this.#clock());
    this.#prepare(now);
    const slot = this.#slotOf(key);
    if (slot >= 0 && !reservations) {
      const open = this.#slab.run(({ reset_used }, index, generation) =>
        reset_used(index, generation, slot, now),
      );
      if (open < 0) throw this.#failure(open);
      if (open > 0) return true;
    }
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
    const open: number[][] = [];
    const slots = only === undefined ? this.#slots : [[only, this.#slotOf(only)] as const];
    for (const [key, slot] of slots) {
      if (slot < 0) continue;
      const code = this.#slab.run(({ save }, index, generation) => save(index, generation, slot, now));
      if (code < 0) throw this.#failure(code);
      if (code === 0) continue;
      const { states, earlier, reservations } = saved(this.#slab.instance.list(), this.policies.length);
      for (const row of earlier) rows.push([keys.length, ...row]);
      for (const row of reservations) open.push([keys.length, ...row]);
      keys.push([storedKey(key), states]);
    }
    return { version: storedVersion, policies: this.policies, keys, earlier: rows, reservations: open };
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

  /** What a reservation needs of the limiter. Work that ends after the limiter was disposed of does not fail for that. */
  readonly #settling = {
    settle: (id: string, used?: Costs) => (this.#isDisposed ? "closed" : this.settle(id, used)),
    extendUntil: (id: string, ttl: Duration) => (this.#isDisposed ? "closed" : this.#extendUntil(id, ttl)),
  };

  /** Decides a question under the policies of this call, if it has any. Sets the end of what is to be reserved. */
  #hitWith(
    key: Key,
    cost: Costs,
    policies: Policies | undefined,
    asked: number,
    reserved?: Reserved,
  ): Decision {
    const read = policies === undefined ? undefined : readCall(policies);
    const call = read?.numbers ?? [];
    const costs = typeof cost === "number" ? undefined : costsByPosition(cost, this.#read, 1);
    const now = this.#clock();
    if (typeof now !== "number") throw invalidTime(now);
    this.#prepare(now);
    const slot = this.#slotOf(key);
    const { instance } = this.#slab;
    instance.writeCall(call);
    if (costs !== undefined) instance.writeCosts(costs);
    if (reserved !== undefined) {
      reserved.end = Math.floor(now) + reserved.ttl;
      instance.writeReservation(reserved.bits, reserved.ttl, reserved.end);
    }
    const count = call.length / schema.perPolicy;
    const kind = asked + (costs === undefined ? 0 : question.byPolicy);
    const code = this.#slab.run(({ hit_with }, index, generation) =>
      hit_with(index, generation, slot, costs === undefined ? (cost as number) : 0, now, count, kind),
    );
    if (code >= 0 && (code & status.moved) !== 0) {
      this.#isUnsettled = true;
      this.#moving = key;
    }
    if (code === status.mismatch) throw mismatch(this.#read, new ReadPolicies(read?.copies));
    if (code <= status.at) throw tooSlow(new ReadPolicies(read?.copies), code);
    return this.#decision(code, cost, now);
  }

  /** Closes or extends a reservation. `numbers` returns the costs, and for an extension the ttl. */
  #close(
    text: string,
    numbers: (isByPolicy: boolean) => readonly number[],
    ttl = 0,
    extended?: (now: number) => void,
  ): Settlement | Extension {
    const { key, bits, end, isByPolicy } = parsedId(text);
    const costs = numbers(isByPolicy);
    const now = checkTime(this.#clock());
    this.#prepare(now);
    const slot = this.#slotOf(key);
    this.#slab.instance.writeCosts(costs);
    this.#slab.instance.writeReservation(bits, ttl, end);
    const code = this.#slab.run(({ close_reservation: close }, index, generation) =>
      close(index, generation, slot, now, Number(extended !== undefined)),
    );
    this.#isUnsettled = true;
    this.#moving = key;
    if (code < 0) throw this.#failure(code);
    this.#settle();
    const settlement = settlements[code] as Settlement | Extension;
    if (settlement === "extended") extended?.(now);
    return settlement;
  }

  /** Moves the end of a reservation, and returns it. */
  #extendUntil(id: string, ttl: Duration): "expired" | "closed" | number {
    const lasts = readTtl(ttl);
    if (lasts === undefined) throw refused("invalid_option", "ttl", ttl, ttlExpected());
    let end = 0;
    const word = this.#close(
      id,
      () => [],
      lasts,
      (now) => {
        end = Math.floor(now) + lasts;
      },
    );
    return word === "extended" ? end : (word as "expired" | "closed");
  }

  /** How long a reservation lasts that does not say. */
  #defaultTtl(): number {
    this.#ttl ??= this.#slab.run(({ count }, index, generation) =>
      count(index, generation, operation.defaultTtl, -1, 0, 0, 0),
    );
    return this.#ttl;
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
    if (number < 0) throw this.#failure(number, undefined, undefined, kind === operation.set ? "set" : "inc");
    if (this.#isUnsettled) this.#settle();
    return number;
  }

  #wrongAmount(kind: number, amount: unknown, position: number): TollgateError {
    if (kind !== operation.set) return wrongInc(amount);
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
  #decision(code: number, cost: Costs, now: number): Decision {
    if (code < 0) throw this.#failure(code, cost, now);
    const decision = this.#results.decision(this.#slab.instance, code);
    // Most hits are of a key that has its slot already, and free none.
    if (this.#isUnsettled) this.#settle();
    return decision;
  }

  /** Returns the error behind a negative status. */
  #failure(code: number, cost?: unknown, now?: unknown, operation = "hit"): TollgateError {
    if (code <= status.reserveOnly && code > status.at) {
      const policy = inWords(this.#read.names[status.reserveOnly - code]);
      return new TollgateError("reserve_only", fill(reserveOnlyText, { policy, operation }));
    }
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
  #takeOver(origins: readonly Origin[], { keys, earlier: rows, reservations: open }: ReadSnapshot): void {
    const now = checkTime(this.#clock());
    const { origins: own } = this.#read;
    const afresh = new Set<string>();
    const all = keys.map(([key, lists], at) => {
      const states = copiedStates(lists, origins.length, inWords(key));
      const [earlier, reservations] = [rows.get(at) ?? [], open.get(at) ?? []];
      return [key, placed({ states, earlier, reservations }, origins, own, afresh, inWords(key))] as const;
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
    if (code <= status.at) throw unreadableAs(this.#read.origins[status.at - code], inWords(key));
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

/** What is to be reserved: its end is set when the clock is read. */
interface Reserved {
  readonly bits: readonly number[];
  readonly ttl: number;
  end: number;
}
