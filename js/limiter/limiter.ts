import { checkIsObject } from "../checks.ts";
import { type TollgateError, wrongAmount, wrongInc } from "../errors/error.ts";
import { Publisher } from "../events/publisher.ts";
import { banLength, banPosition } from "../policy/bans.ts";
import { costsByPosition, usedByPosition } from "../policy/costs.ts";
import { endAt, flatParts, keyException, readEnd, readException, unfit } from "../policy/exceptions.ts";
import { mismatch, ReadPolicies, readCall, tooSlow } from "../policy/policies.ts";
import { Reservation } from "../reservation/reservation.ts";
import { idText, parsedId, randomBits } from "../reservation/reservation-id.ts";
import { checkTime, invalidTime } from "../time.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  Key,
  KeyException,
  Options,
  Policies,
  Policy,
  ReserveOptions,
  Settlement,
  Snapshot,
  StoredKey,
} from "../types.ts";
import { hitKind, operation, settlements, status, storedVersion } from "../wasm/generated.ts";
import { Results } from "../wasm/results.ts";
import { endOf, type SavedRow, saved } from "../wasm/states.ts";
import { LimiterStates } from "./limiter-states.ts";
import { givenOptions, type ReadOptions, readOptions, readReserveOptions } from "./options.ts";
import { readReservations } from "./reset-options.ts";
import { hitSlot, type Reserved } from "./slot-hit.ts";
import { readSnapshot } from "./snapshot.ts";
import { storedKey } from "./stored-key.ts";
import { ttlOf } from "./ttl.ts";

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
  /** @internal */
  readonly publisher: Publisher;

  readonly #read: ReadPolicies;
  readonly #clock: () => number;
  readonly #results: Results;
  readonly #states: LimiterStates;
  readonly #options: ReadOptions;
  #ttl: number | undefined;

  constructor(policies: Policies, options: Options = {}) {
    const read = readOptions(options);
    this.#options = read;
    this.#read = new ReadPolicies(policies);
    this.policies = this.#read.policies;
    this.publisher = new Publisher("memory", read.onDecision);
    this.#clock = read.clock;
    this.#results = new Results(this.#read.names);
    this.#states = new LimiterStates(this.#read, read);
  }

  /** The number of keys, including expired ones that have not been cleaned yet. */
  get size(): number {
    return this.#states.size;
  }

  /** How many live keys were evicted because the limiter was full. */
  get evicted(): number {
    return this.#states.evicted;
  }

  /**
   * Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name.
   * A third argument has other numbers for this call only: the same algorithm and `scale`, another limit, capacity or
   * rate.
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
    if (policies !== undefined || typeof cost !== "number" || this.publisher.isHeard)
      return this.#decideWith("hit", key, cost, policies, hitKind.hit);
    const states = this.#states;
    const now = this.#clock();
    if (typeof now !== "number") throw invalidTime(now);
    if (states.hasMoves || states.limiter.instance.broken) states.prepare(now);
    // The slot is looked up last: the caller's clock may have used the limiter.
    const slot = states.slotOf(key);
    const { instance, index, generation } = states.limiter;
    let code: number;
    try {
      code = instance.exports.hit(index, generation, slot, cost, now);
    } catch (error) {
      instance.broken = true;
      throw error;
    }
    // Before any call, since the stack may have no room for one. An error may have moved slots, too.
    if (code < 0 || (code & status.moved) !== 0) {
      states.hasMoves = true;
      states.moving = key;
    }
    return this.#decision(code, cost, now);
  }

  /**
   * Returns the decision of a hit without making it: its numbers include the cost, if that would be allowed. A cost of 0
   * tells what counts now. Changes no state.
   */
  peek(key: Key, cost: Costs = 1, policies?: Policies): Decision {
    return this.#hitWith(key, cost, policies, hitKind.peek);
  }

  /**
   * Returns what a hit would return that is not counted if it is denied.
   * @internal
   */
  peekFree(key: Key, cost: Costs = 1, policies?: Policies): Decision {
    return this.#hitWith(key, cost, policies, hitKind.peekFree);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside: it counts as used until it is settled, or until its
   * `ttl` ends and it is charged in full.
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
    const decision = this.#decideWith("reserve", key, cost, policies, hitKind.reserve, reserved);
    const { bits, end } = reserved;
    const id = decision.allowed ? idText({ key, bits, end, isByPolicy }) : "";
    return new Reservation(this.#settling, key, decision, id, decision.allowed ? end : 0);
  }

  /**
   * Closes a reservation by its id and charges the used amount, by default all of it. Returns `"settled"`, `"expired"`
   * (it had been charged in full) or `"closed"` (it had been settled).
   */
  settle(id: string, used?: Costs): Settlement {
    return this.#close(id, (isByPolicy) => usedByPosition(used, this.#read, isByPolicy)) as Settlement;
  }

  /** Closes a reservation by its id without a charge. */
  cancel(id: string): Settlement {
    return this.settle(id, 0);
  }

  /** Moves the end of a reservation, by its id, to `ttl` from now. */
  extend(id: string, ttl: Duration): Extension {
    const extended = this.#extendUntil(id, ttl);
    return typeof extended === "number" ? "extended" : extended;
  }

  /**
   * Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back, at most what
   * is used; a window does not restart. With several policies, `policy` is the name of the one to charge.
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

  /** Sets the key's count, as if `count` had just been used, or its tokens. Returns the count. */
  set(key: Key, count: number, policy?: string): number {
    return this.#count(operation.set, key, count, policy);
  }

  /** Returns the key's count. */
  get(key: Key, policy?: string): number {
    return this.#count(operation.get, key, 0, policy);
  }

  /** Returns when the key's state ends, in milliseconds since the epoch; 0 if it has none. */
  expiresAt(key: Key, policy?: string): number {
    return this.#count(operation.expiresAt, key, 0, policy);
  }

  /**
   * Denies every hit of the key for so long, or changes the end of the ban that holds. Returns the end, in milliseconds
   * since the epoch. A ban by hand does not make the next one longer. Among several bans, `policy` is the name of one.
   *
   * @example
   * ```ts
   * import { RateLimiter } from "tollgate";
   *
   * const limiter = new RateLimiter([
   *   { algorithm: "sliding_window", limit: 10, scale: "1m" },
   *   { algorithm: "ban", after: 5, scale: "10m", for: "1h" },
   * ]);
   * limiter.ban("token:42", "1d");
   * console.log(limiter.hit("token:42").reason); // => "banned"
   * limiter.unban("token:42");
   * ```
   */
  ban(key: Key, length: Duration, policy?: string): number {
    return this.#count(operation.ban, key, banLength(length), policy, banPosition(this.#read, policy));
  }

  /** Lifts the ban of a key and forgets its past ones. Returns true if one held. */
  unban(key: Key, policy?: string): boolean {
    return this.#count(operation.unban, key, 0, policy, banPosition(this.#read, policy)) > 0;
  }

  /**
   * Gives the key other numbers until a time, or allows or denies everything; `null` lifts that. It replaces the exception
   * that the key has. A field stands before that of a call, and that before the policy's own. Returns the end of the
   * exception, in milliseconds since the epoch; with `null`, when it would have ended, or 0 if there was none.
   *
   * @example
   * ```ts
   * import { RateLimiter } from "tollgate";
   *
   * const limiter = new RateLimiter({ name: "api", algorithm: "fix_window", limit: 100, scale: "1m" });
   * limiter.except("customer:42", { api: { limit: 1000 } }, { for: "1w" });
   * limiter.except("office", { allow: true }, { until: Date.now() + 3_600_000 });
   * limiter.except("token:7", { deny: true }, { for: "1d" });
   * console.log(limiter.hit("customer:42").limit); // => 1000
   * console.log(limiter.hit("token:7").reason); // => "denied"
   * limiter.except("token:7", null);
   * ```
   */
  except(key: Key, exception: Exception, end: ExceptionEnd): number;
  except(key: Key, exception: null): number;
  except(key: Key, exception: Exception | null, end?: ExceptionEnd): number {
    const parts = exception === null ? [] : readException(exception, this.#read);
    const given = exception === null ? undefined : readEnd(end);
    const now = checkTime(this.#clock());
    const until = given === undefined ? 0 : endAt(given, now);
    this.#states.prepare(now);
    const slot = this.#states.slotOf(key);
    const numbers = flatParts(parts, this.#states.names, until, now);
    const ends = this.#states.operate(key, (limiter) => limiter.except(slot, numbers, now));
    if (ends <= status.at) throw unfit(this.#read, parts, status.at - ends, false);
    if (ends < 0) throw this.#states.error(ends);
    return ends;
  }

  /** Returns the exception of a key; `null` if it has none. */
  exceptions(key: Key): KeyException | null {
    const now = checkTime(this.#clock());
    this.#states.prepare(now);
    const slot = this.#states.slotOf(key);
    return slot < 0 ? null : keyException(this.#saved(slot, now), this.#states.names, now);
  }

  /**
   * Removes the key's states, and returns true if there were any. Reservations stay open, unless `reservations` is
   * true. An exception stays.
   */
  reset(key: Key, options: { readonly reservations?: boolean | undefined } = {}): boolean {
    const reservations = readReservations(options);
    const now = checkTime(this.#clock());
    this.#states.prepare(now);
    const slot = this.#states.slotOf(key);
    if (slot >= 0) {
      const left = this.#states.operate(key, (limiter) => {
        const left = limiter.run(({ reset }, index, generation) =>
          reset(index, generation, slot, Number(reservations), now),
        );
        // Here, since a listener of what was moved may use the key again.
        if (left === 0) this.#states.release(slot);
        return left;
      });
      if (left < 0) throw this.#states.error(left);
    }
    return slot >= 0;
  }

  /** Removes every expired key now, and returns how many there were. No other operation examines all keys. */
  clean(): number {
    return this.#states.clean(checkTime(this.#clock()));
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
    this.#states.prepare(now);
    const keys: (readonly [StoredKey, readonly (readonly number[])[]])[] = [];
    const slots = only === undefined ? this.#states.slots : [[only, this.#states.slotOf(only)] as const];
    for (const [key, slot] of slots) {
      if (slot < 0) continue;
      const rows = this.#saved(slot, now).filter(([, row]) => endOf(row) > now);
      if (rows.length > 0) keys.push([storedKey(key), rows.map(([name, row]) => [name, ...row])]);
    }
    const names = this.#states.names.names.slice(this.policies.length);
    return { version: storedVersion, policies: this.policies, keys, names };
  }

  /**
   * Returns a limiter with the states of a snapshot. With other `policies` than the snapshot's, a changed limit, capacity
   * or rate applies to the states as they are. A policy of another algorithm, `scale` or `per` starts unused; the row of
   * the shape that it had stays until its end, and is in the next snapshot.
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
    limiter.#states.restore(made, read);
    return limiter;
  }

  /**
   * Validates policies, and returns them with their shapes.
   * @internal
   */
  static read(policies: Policies): ReadPolicies {
    return ReadPolicies.of(policies);
  }

  /**
   * Returns an empty limiter with the same options under other policies.
   * @internal
   */
  sibling(policies: Policies): RateLimiter {
    return new RateLimiter(policies, givenOptions(this.#options));
  }

  /**
   * Whether the key has states.
   * @internal
   */
  has(key: Key): boolean {
    if (this.#states.hasMoves) this.#states.prepare(checkTime(this.#clock()));
    return this.#states.slots.has(key);
  }

  /**
   * Moves a key into a sibling, with its states of all shapes and its reservations.
   * @internal
   */
  moveTo(sibling: RateLimiter, key: Key): void {
    const read = readSnapshot(this.snapshot(key));
    sibling.#states.restore(this.#read, read, false);
    this.#states.release(this.#states.slotOf(key));
  }

  /** Frees the memory. That of a limiter that is not disposed of is freed with it, by the garbage collector. */
  [Symbol.dispose](): void {
    this.#states.dispose();
  }

  /** The methods for reservations. Work that ends after the limiter was disposed of must not fail for that. */
  readonly #settling = {
    settle: (id: string, used?: Costs) => (this.#states.disposed ? "closed" : this.settle(id, used)),
    extendUntil: (id: string, ttl: Duration) =>
      this.#states.disposed ? "closed" : this.#extendUntil(id, ttl),
  };

  /** Returns the states of a slot, unless they have ended. */
  #saved(slot: number, now: number): SavedRow[] {
    const code = this.#states.limiter.run(({ save }, index, generation) =>
      save(index, generation, slot, now),
    );
    if (code < 0) throw this.#states.error(code);
    return saved(this.#states.limiter.instance.list());
  }

  /** Hits or reserves as `#hitWith` does, and publishes the decision if it has a listener. */
  #decideWith(
    operation: "hit" | "reserve",
    key: Key,
    cost: Costs,
    policies: Policies | undefined,
    kind: number,
    reserved?: Reserved,
  ): Decision {
    if (!this.publisher.isHeard) return this.#hitWith(key, cost, policies, kind, reserved);
    return this.publisher.decided(operation, key, cost, () =>
      this.#hitWith(key, cost, policies, kind, reserved),
    );
  }

  /** Hits, peeks or reserves, with the policies of this call if it has any. Sets the end of a reservation. */
  #hitWith(
    key: Key,
    cost: Costs,
    policies: Policies | undefined,
    kind: number,
    reserved?: Reserved,
  ): Decision {
    const call = policies === undefined ? undefined : readCall(policies);
    const costs = typeof cost === "number" ? undefined : costsByPosition(cost, this.#read);
    const now = this.#clock();
    if (typeof now !== "number") throw invalidTime(now);
    this.#states.prepare(now);
    const slot = this.#states.slotOf(key);
    this.#states.hasMoves = true;
    this.#states.moving = key;
    const code = hitSlot(this.#states.limiter, slot, cost, costs, call, now, kind, reserved);
    if (code < 0) this.#states.settle();
    if (code === status.mismatch) throw mismatch(this.#read, new ReadPolicies(call?.copies));
    if (code <= status.at) throw tooSlow(new ReadPolicies(call?.copies), code);
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
    this.#states.prepare(now);
    const slot = this.#states.slotOf(key);
    this.#states.limiter.instance.writeCosts(costs);
    this.#states.limiter.instance.writeReservation(bits, ttl, end);
    const code = this.#states.operate(key, (limiter) =>
      limiter.run(({ close_reservation: close }, index, generation) =>
        close(index, generation, slot, now, Number(extended !== undefined)),
      ),
    );
    if (code < 0) throw this.#states.error(code);
    const settlement = settlements[code] as Settlement | Extension;
    if (settlement === "extended") extended?.(now);
    return settlement;
  }

  /** Moves the end of a reservation, and returns it. */
  #extendUntil(id: string, ttl: Duration): "expired" | "closed" | "evicted" | number {
    const lasts = ttlOf(ttl);
    let end = 0;
    const word = this.#close(
      id,
      () => [],
      lasts,
      (now) => {
        end = Math.floor(now) + lasts;
      },
    );
    return word === "extended" ? end : (word as "expired" | "closed" | "evicted");
  }

  /** Returns how long a reservation without a `ttl` lasts. */
  #defaultTtl(): number {
    this.#ttl ??= this.#states.limiter.run(({ count }, index, generation) =>
      count(index, generation, operation.defaultTtl, -1, 0, 0, 0),
    );
    return this.#ttl;
  }

  /** Performs an operation on the count of one policy. */
  #count(
    kind: number,
    key: Key,
    amount: number,
    policy?: string,
    position: number = this.#read.position(policy),
  ): number {
    const now = checkTime(this.#clock());
    this.#states.prepare(now);
    const slot = this.#states.slotOf(key);
    // Anything but a number is an invalid amount.
    const given = typeof amount === "number" ? amount : Number.NaN;
    const number = this.#states.operate(key, (limiter) =>
      limiter.run(({ count }, index, generation) =>
        count(index, generation, kind, slot, given, now, position),
      ),
    );
    if (number === status.invalidAmount) throw this.#wrongAmount(kind, amount, position, key, now);
    if (number < 0)
      throw this.#states.error(number, undefined, undefined, kind === operation.set ? "set" : "inc");
    return number;
  }

  #wrongAmount(kind: number, amount: unknown, position: number, key: Key, now: number): TollgateError {
    if (kind !== operation.set) return wrongInc(amount);
    const slot = this.#states.slotOf(key);
    const most = this.#states.limiter.run(({ count }, index, generation) =>
      count(index, generation, operation.maxCount, slot, 0, now, position),
    );
    return wrongAmount("count", amount, most < 0 ? undefined : most);
  }

  /** Returns the decision for a status. It has one return, so that a decision that is only read is never allocated. */
  #decision(code: number, cost: Costs, now: number): Decision {
    if (code < 0) throw this.#states.failed(code, cost, now);
    const decision = this.#results.decision(this.#states.limiter.instance, code);
    // Most hits are on a key that has a slot, and free none.
    if (this.#states.hasMoves) this.#states.settle();
    return decision;
  }
}
