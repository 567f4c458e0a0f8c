import { copiedOptions } from "../checks.ts";
import { invalidField, outOfMemory, TollgateError, wrongAmount, wrongInc } from "../errors/error.ts";
import { banLength, banPosition, uncountable } from "../policy/bans.ts";
import { costsByPosition, usedByPosition } from "../policy/costs.ts";
import { ttlExpected } from "../policy/durations.ts";
import {
  type ExceptionPart,
  endAt,
  flatParts,
  keyException,
  readEnd,
  readException,
  unfit,
} from "../policy/exceptions.ts";
import { mismatch, ReadPolicies, readCall } from "../policy/policies.ts";
import { idText, parsedId, randomBits } from "../reservation/reservation-id.ts";
import { checkTime } from "../time.ts";
import type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  Extension,
  KeyException,
  Policies,
  Policy,
  ReserveOptions,
  Settlement,
  State,
} from "../types.ts";
import { namesIn } from "../wasm/decision-numbers.ts";
import { hitKind, operation, settlements, status } from "../wasm/generated.ts";
import { Results } from "../wasm/results.ts";
import { rejected, SlotLimiter } from "../wasm/slot-limiter.ts";
import { ShapeNames, saved } from "../wasm/states.ts";
import { readOptions, readReserveOptions, readTtl } from "./options.ts";
import { hitSlot, type Reserved } from "./slot-hit.ts";
import { loadStates, noRoom, readState, savedNumbers, stateOf } from "./stored-states.ts";

/** The states of a key as they are to be stored. */
export interface SavedLedger {
  /** The state to store; `null` if the key is as if never used. */
  readonly state: State | null;
  /** When the state ends, in milliseconds since the epoch; 0 if there is none. */
  readonly expiresAt: number;
  /** True if an operation changed the states since they were loaded. */
  readonly changed: boolean;
}

/**
 * What undoes a hit: 64 random bits in the first two numbers, when the hit was charged, and how much a bucket held beside it.
 * @internal
 */
export interface HitId {
  readonly bits: readonly number[];
  readonly at: number;
  readonly beside: number;
}

/**
 * A hit in a ledger, and what undoes it; `undefined` if it charged nothing.
 * @internal
 */
export interface LedgerHit {
  readonly decision: Decision;
  readonly hit: HitId | undefined;
}

/** A reservation in a ledger. */
export interface LedgerReservation {
  /** The decision. Its numbers include the reserved amount. */
  readonly decision: Decision;
  /** The id, which settles it also in another ledger that loads the state; empty if it was denied. */
  readonly id: string;
  /** When it is charged in full unless it is settled, in milliseconds since the epoch; 0 if it was denied. */
  readonly expiresAt: number;
}

/**
 * The states of one key under all policies, loaded from a stored state and saved to one: every operation, at a time that
 * the caller passes, and several of them between one load and one save. `StoreLimiter` of `tollgate/store` uses it over
 * any store; `step` performs a single operation.
 *
 * @example
 * ```ts
 * import { Ledger } from "tollgate";
 *
 * const ledger = new Ledger({ algorithm: "fix_window", limit: 10, scale: "1m" });
 * const now = Date.now();
 * ledger.load(now, null);
 * ledger.hit(now, 4);
 * const { id } = ledger.reserve(now, 5);
 * const { state } = ledger.save(now);
 *
 * ledger.load(now, JSON.parse(JSON.stringify(state)));
 * console.log(ledger.settle(now, id, 2)); // => "settled"
 * console.log(ledger.get(now)); // => 6
 * ```
 */
export class Ledger {
  /** Copies of the policies it was made with. */
  readonly policies: readonly Policy[];

  readonly #read: ReadPolicies;
  readonly #results: Results;
  #names: ShapeNames;
  #limiter: SlotLimiter;
  /** The slot of the key; -1 if it is as if never used. */
  #slot = -1;
  /** The states before the first operation that may have changed them, as a text. */
  #before: string | undefined;
  #isDisposed = false;

  constructor(policies: Policies) {
    this.#read = new ReadPolicies(policies);
    this.policies = this.#read.policies;
    this.#results = new Results(this.#read.names);
    this.#names = new ShapeNames(this.#read.names);
    this.#limiter = newSlots(this.#read);
  }

  /**
   * The names of the policies.
   * @internal
   */
  get names(): readonly string[] {
    return this.#read.names;
  }

  /**
   * Replaces the states by stored ones; `null` is a key never used. Returns the names of the policies that start unused
   * because their algorithm, `scale` or `per` changed.
   * @throws TollgateError `invalid_state` or `unsupported_version`; the states are then those of a key never used.
   */
  load(now: number, state: State | null): string[] {
    checkTime(now);
    this.#checkDisposed();
    this.#clear();
    this.#names = new ShapeNames(this.#read.names);
    if (state == null) return [];
    const read = readState(state, this.#names);
    const afresh = loadStates(this.#limiter, read, now);
    this.#follow();
    return namesIn(afresh, this.#read.names);
  }

  /** Returns the states as they are to be stored. */
  save(now: number): SavedLedger {
    const [expiresAt, numbers] = savedNumbers(this.#ready(now), this.#slot, now);
    return {
      state: stateOf(numbers, this.#names, now),
      expiresAt,
      changed: this.#before !== undefined && this.#before !== `${numbers}`,
    };
  }

  /**
   * Decides whether the key may act now, and charges `cost` if so: one number, or one for each policy by its name. The
   * last argument has other numbers for this call only.
   */
  hit(now: number, cost: Costs = 1, policies?: Policies): Decision {
    return this.#decide(now, cost, policies, hitKind.hit);
  }

  /**
   * Decides a hit that can be undone.
   * @internal
   */
  hitUndoable(now: number, cost: Costs = 1, policies?: Policies): LedgerHit {
    const decision = this.#decide(now, cost, policies, hitKind.hit);
    const limiter = this.#limiter;
    if (!decision.allowed || this.#slot < 0) return { decision, hit: undefined };
    limiter.instance.writeCosts(this.#costs(cost));
    const beside = limiter.run(({ undo }, index, generation) => undo(index, generation, this.#slot, now, 1));
    const hit = Number.isNaN(beside) ? undefined : { bits: randomBits(), at: Math.floor(now), beside };
    return { decision, hit };
  }

  /**
   * Gives back what of a hit of these costs still counts, once. Returns the most that was given back under a policy.
   * @internal
   */
  undo(now: number, cost: Costs, { bits, at, beside }: HitId): number {
    const limiter = this.#writable(now);
    limiter.instance.writeCosts(this.#costs(cost));
    limiter.instance.writeReservation(bits, beside, at);
    const given = limiter.run(({ undo }, index, generation) => undo(index, generation, this.#slot, now, 0));
    if (given < 0) throw this.#error(given, "undo", cost);
    this.#follow();
    return given;
  }

  /** Returns costs by position. */
  #costs(cost: Costs): readonly number[] {
    const { names } = this.#read;
    return typeof cost === "number" ? names.map(() => cost) : costsByPosition(cost, this.#read);
  }

  /** Returns what a hit would return. Changes no state. */
  peek(now: number, cost: Costs = 1, policies?: Policies): Decision {
    return this.#decide(now, cost, policies, hitKind.peek);
  }

  /**
   * Decides as a hit does and, if allowed, sets the cost aside until it is settled, or until its `ttl` ends and it is
   * charged in full. At most 1,024 are open at a time.
   */
  reserve(now: number, cost: Costs = 1, options: ReserveOptions = {}): LedgerReservation {
    const { ttl = this.#defaultTtl(), policies } = readReserveOptions(options);
    const reserved = { bits: randomBits(), ttl, end: 0 };
    const decision = this.#decide(now, cost, policies, hitKind.reserve, reserved);
    if (!decision.allowed) return { decision, id: "", expiresAt: 0 };
    const { bits, end } = reserved;
    const id = idText({ key: "", bits, end, isByPolicy: typeof cost !== "number" });
    return { decision, id, expiresAt: end };
  }

  /** Closes a reservation and charges the used amount, by default all of it. */
  settle(now: number, id: string, used?: Costs): Settlement {
    const { bits, end, isByPolicy } = parsedId(id);
    const costs = usedByPosition(used, this.#read, isByPolicy);
    return this.#close(now, bits, end, costs, 0) as Settlement;
  }

  /** Moves the end of a reservation to `ttl` from now. */
  extend(now: number, id: string, ttl: Duration): Extension {
    const { bits, end } = parsedId(id);
    const time = readTtl(ttl);
    if (time === undefined) throw invalidField("invalid_option", "ttl", ttl, ttlExpected());
    return this.#close(now, bits, end, [], time) as Extension;
  }

  /** Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. */
  inc(now: number, cost = 1, policy?: string): number {
    return this.#count(now, "inc", cost, policy);
  }

  /** Sets the count, as if `count` had just been used, or the tokens. Returns the count. */
  set(now: number, count: number, policy?: string): number {
    return this.#count(now, "set", count, policy);
  }

  /** Returns the count. */
  get(now: number, policy?: string): number {
    return this.#count(now, "get", 0, policy);
  }

  /** Returns when the state ends, in milliseconds since the epoch; 0 if there is none. */
  expiresAt(now: number, policy?: string): number {
    return this.#count(now, "expiresAt", 0, policy);
  }

  /**
   * Denies every hit for so long, or changes the end of the ban that holds. Returns the end, in milliseconds since the
   * epoch.
   */
  ban(now: number, length: Duration, policy?: string): number {
    return this.#count(now, "ban", banLength(length), policy, banPosition(this.#read, policy));
  }

  /** Lifts a ban and forgets past ones. Returns true if one held. */
  unban(now: number, policy?: string): boolean {
    return this.#count(now, "unban", 0, policy, banPosition(this.#read, policy)) > 0;
  }

  /**
   * Gives the key other numbers until a time, or allows or denies everything; `null` lifts that. It replaces the exception
   * that the key has. Returns its end; with `null`, when it would have ended, or 0 if there was none.
   */
  except(now: number, exception: Exception, end: ExceptionEnd): number;
  except(now: number, exception: null): number;
  except(now: number, exception: Exception | null, end?: ExceptionEnd): number {
    if (exception === null) return this.exceptUntil(now, [], 0);
    const parts = readException(exception, this.#read);
    return this.exceptUntil(now, parts, endAt(readEnd(end), checkTime(now)));
  }

  /**
   * Does so by what was read of an exception.
   * @internal
   */
  exceptUntil(now: number, parts: readonly ExceptionPart[], until: number): number {
    const limiter = this.#writable(now);
    const ends = limiter.except(this.#slot, flatParts(parts, this.#names, until, now), now);
    this.#follow();
    if (ends <= status.at) throw unfit(this.#read, parts, status.at - ends, true);
    if (ends < 0) throw outOfMemory();
    return ends;
  }

  /**
   * Reads an exception under these policies.
   * @internal
   */
  readException(exception: Exception): readonly ExceptionPart[] {
    return readException(exception, this.#read);
  }

  /** Returns the exception of the key; `null` if it has none. */
  exceptions(now: number): KeyException | null {
    const [, numbers] = savedNumbers(this.#ready(now), this.#slot, now);
    return keyException(saved(numbers), this.#names, now);
  }

  /**
   * Removes the states, and returns true if there were any. Reservations stay open, unless `reservations` is true. An
   * exception stays.
   */
  reset(now: number, options: { readonly reservations?: boolean | undefined } = {}): boolean {
    const { reservations = false } = copiedOptions(options, ["reservations"]);
    if (typeof reservations !== "boolean")
      throw invalidField("invalid_option", "reservations", reservations, "a boolean");
    const limiter = this.#writable(now);
    const slot = this.#slot;
    if (slot < 0) return false;
    const left = limiter.run(({ reset }, index, generation) =>
      reset(index, generation, slot, Number(reservations), now),
    );
    this.#follow();
    if (left < 0) throw outOfMemory();
    if (left === 0) this.#release();
    return true;
  }

  /** Frees the memory. That of a ledger that is not disposed of is freed with it, by the garbage collector. */
  [Symbol.dispose](): void {
    if (!this.#isDisposed) this.#limiter.free();
    this.#isDisposed = true;
  }

  #decide(
    now: number,
    cost: Costs,
    policies: Policies | undefined,
    kind: number,
    reserved?: Reserved,
  ): Decision {
    const call = policies === undefined ? undefined : readCall(policies);
    const costs = typeof cost === "number" ? undefined : costsByPosition(cost, this.#read);
    const limiter = kind === hitKind.peek ? this.#ready(now) : this.#writable(now);
    const code = hitSlot(limiter, this.#slot, cost, costs, call, now, kind, reserved);
    this.#follow();
    if (code < 0) throw this.#error(code, kind === hitKind.reserve ? "reserve" : "hit", cost, call?.copies);
    return this.#results.decision(limiter.instance, code);
  }

  /** Settles a reservation; with a `ttl` above 0, moves its end. */
  #close(
    now: number,
    bits: readonly number[],
    end: number,
    costs: readonly number[],
    ttl: number,
  ): Settlement | Extension {
    const limiter = this.#writable(now);
    limiter.instance.writeCosts(costs);
    limiter.instance.writeReservation(bits, ttl, end);
    const code = limiter.run(({ close_reservation: close }, index, generation) =>
      close(index, generation, this.#slot, now, Number(ttl > 0)),
    );
    this.#follow();
    if (code < 0) throw this.#error(code, "settle");
    return settlements[code] as Settlement | Extension;
  }

  #count(
    now: number,
    kind: "inc" | "set" | "get" | "expiresAt" | "ban" | "unban",
    amount: number,
    policy: string | undefined,
    position: number = this.#read.position(policy),
  ): number {
    const limiter = kind === "get" || kind === "expiresAt" ? this.#ready(now) : this.#writable(now);
    const count = (kind: number, amount: number) =>
      limiter.run(({ count }, index, generation) =>
        count(index, generation, kind, this.#slot, amount, now, position),
      );
    const value = count(operation[kind], typeof amount === "number" ? amount : Number.NaN);
    this.#follow();
    if (value === status.invalidAmount)
      throw kind === "set" ? wrongAmount("count", amount, count(operation.maxCount, 0)) : wrongInc(amount);
    if (value < 0) throw this.#error(value, kind);
    return value;
  }

  #defaultTtl(): number {
    return this.#limiter.run(({ count }, index, generation) =>
      count(index, generation, operation.defaultTtl, -1, 0, 0, 0),
    );
  }

  /** Returns the limiter for an operation that only reads. */
  #ready(now: number): SlotLimiter {
    checkTime(now);
    this.#checkDisposed();
    if (this.#limiter.instance.broken)
      throw new TollgateError("state_lost", "the states of this ledger were lost in a trap; load them again");
    return this.#limiter;
  }

  /** Returns the limiter for an operation that may change the states. */
  #writable(now: number): SlotLimiter {
    const limiter = this.#ready(now);
    this.#before ??= `${savedNumbers(limiter, this.#slot, now)[1]}`;
    return limiter;
  }

  /** Follows the key to the slot that it took, or out of the one that was freed. */
  #follow(): void {
    const [taken = -1, count = 0, ...freed] = this.#limiter.takeMoves();
    if (freed.slice(0, count).includes(this.#slot)) this.#slot = -1;
    if (taken >= 0) this.#slot = taken;
  }

  /** Removes the states. A limiter in a broken instance of the wasm is replaced. */
  #clear(): void {
    if (this.#limiter.instance.broken) {
      this.#slot = -1;
      this.#limiter = newSlots(this.#read);
    }
    this.#release();
    this.#before = undefined;
  }

  #release(): void {
    const slot = this.#slot;
    this.#slot = -1;
    if (slot >= 0) this.#limiter.run(({ release }, index, generation) => release(index, generation, slot));
  }

  #checkDisposed(): void {
    if (this.#isDisposed) throw new TollgateError("disposed", "this ledger was disposed of; make a new one");
  }

  /** Returns the error for a status below 0. */
  #error(code: number, operation: string, cost?: unknown, call?: unknown): TollgateError {
    if (code <= status.uncountable && code > status.at)
      return uncountable(this.#read, status.uncountable - code, operation);
    if (code === status.mismatch) return mismatch(this.#read, new ReadPolicies(call));
    if (code <= status.at) return rejected(new ReadPolicies(call), code, true);
    return code === status.invalidCost ? wrongAmount("cost", cost) : noRoom(code);
  }
}

const newSlots = (read: ReadPolicies): SlotLimiter => new SlotLimiter(read, readOptions({}), false, true);
