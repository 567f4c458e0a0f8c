// No standard year has `Symbol.dispose`, and a project may have chosen a library without it.
/// <reference lib="esnext.disposable" preserve="true" />

import { outOfMemory, TollgateError } from "../errors/error.ts";
import { banLength } from "../policy/bans.ts";
import { costsByPosition, usedByPosition } from "../policy/costs.ts";
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
import { hitKind, operation, settlements, status } from "../wasm/generated.ts";
import type { Exports } from "../wasm/instance.ts";
import { rejected, type SlotLimiter } from "../wasm/slot-limiter.ts";
import { ShapeNames, saved } from "../wasm/states.ts";
import { LoadedKey, newSlots, type SavedLedger } from "./loaded-key.ts";
import type { KeyOperation } from "./operation.ts";
import { readReserveOptions } from "./options.ts";
import { readReservations } from "./reset-options.ts";
import type { Reserved } from "./slot-hit.ts";
import { savedNumbers } from "./stored-states.ts";
import { ttlOf } from "./ttl.ts";

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

/** The states of a key, which may be loaded again. */
class LedgerKey extends LoadedKey {
  #isDisposed = false;

  override load(now: number, state: State | null): string[] {
    checkTime(now);
    this.#checkDisposed();
    this.#clear();
    return super.load(now, state);
  }

  override ready(now: number): SlotLimiter {
    checkTime(now);
    this.#checkDisposed();
    if (this.limiter.instance.broken)
      throw new TollgateError("state_lost", "the states of this ledger were lost in a trap; load them again");
    return this.limiter;
  }

  /** Follows the key to the slot that it took, or out of the one that was freed. */
  override follow(): void {
    const [taken = -1, count = 0, ...freed] = this.limiter.takeMoves();
    if (freed.slice(0, count).includes(this.slot)) this.slot = -1;
    if (taken >= 0) this.slot = taken;
  }

  override release(): void {
    const { slot } = this;
    super.release();
    if (slot >= 0) this.limiter.run(({ release }, index, generation) => release(index, generation, slot));
  }

  override error(code: number, operation: string, cost?: unknown, call?: unknown): TollgateError {
    if (code === status.mismatch) return mismatch(this.read, new ReadPolicies(call));
    const isOfCall = code <= status.at;
    return isOfCall ? rejected(new ReadPolicies(call), code, true) : super.error(code, operation, cost);
  }

  dispose(): void {
    if (!this.#isDisposed) this.limiter.free();
    this.#isDisposed = true;
  }

  /** Removes the states. A limiter in a broken instance of the wasm is replaced. */
  #clear(): void {
    if (this.limiter.instance.broken) {
      this.slot = -1;
      this.limiter = newSlots(this.read);
    }
    this.release();
    this.before = undefined;
    this.names = new ShapeNames(this.read.names);
  }

  #checkDisposed(): void {
    if (this.#isDisposed) throw new TollgateError("disposed", "this ledger was disposed of; make a new one");
  }
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

  readonly #key: LedgerKey;

  constructor(policies: Policies) {
    this.#key = new LedgerKey(policies);
    this.policies = this.#key.read.policies;
  }

  /**
   * The names of the policies.
   * @internal
   */
  get names(): readonly string[] {
    return this.#key.read.names;
  }

  /**
   * Replaces the states by stored ones; `null` is a key never used. Returns the names of the policies that start unused
   * because their algorithm, `scale` or `per` changed.
   * @throws TollgateError `invalid_state` or `unsupported_version`; the states are then those of a key never used.
   */
  load(now: number, state: State | null): string[] {
    return this.#key.load(now, state);
  }

  /** Returns the states as they are to be stored. */
  save(now: number): SavedLedger {
    return this.#key.save(now);
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
    const { slot } = this.#key;
    if (!decision.allowed || slot < 0) return { decision, hit: undefined };
    const limiter = this.#key.ready(now);
    limiter.instance.writeCosts(this.#costs(cost));
    const beside = limiter.run(({ undo }, index, generation) => undo(index, generation, slot, now, 1));
    const hit = Number.isNaN(beside) ? undefined : { bits: randomBits(), at: Math.floor(now), beside };
    return { decision, hit };
  }

  /**
   * Gives back what of a hit of these costs still counts, once. Returns the most that was given back under a policy.
   * @internal
   */
  undo(now: number, cost: Costs, { bits, at, beside }: HitId): number {
    const { instance } = this.#key.writable(now);
    instance.writeCosts(this.#costs(cost));
    instance.writeReservation(bits, beside, at);
    return this.#change(
      now,
      "undo",
      ({ undo }, index, generation, slot) => undo(index, generation, slot, now, 0),
      cost,
    );
  }

  /** Returns costs by position. */
  #costs(cost: Costs): readonly number[] {
    const { read } = this.#key;
    return typeof cost === "number" ? read.names.map(() => cost) : costsByPosition(cost, read);
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
    const { ttl = this.#defaultTtl(now), policies } = readReserveOptions(options);
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
    const costs = usedByPosition(used, this.#key.read, isByPolicy);
    return this.#close(now, bits, end, costs, 0) as Settlement;
  }

  /** Moves the end of a reservation to `ttl` from now. */
  extend(now: number, id: string, ttl: Duration): Extension {
    const { bits, end } = parsedId(id);
    return this.#close(now, bits, end, [], ttlOf(ttl)) as Extension;
  }

  /** Adds a cost to the count, whether it fits or not, and returns the count. A negative cost gives back. */
  inc(now: number, cost = 1, policy?: string): number {
    return this.#key.number(now, "inc", cost, policy);
  }

  /** Sets the count, as if `count` had just been used, or the tokens. Returns the count. */
  set(now: number, count: number, policy?: string): number {
    return this.#key.number(now, "set", count, policy);
  }

  /** Returns the count. */
  get(now: number, policy?: string): number {
    return this.#key.number(now, "get", 0, policy);
  }

  /** Returns when the state ends, in milliseconds since the epoch; 0 if there is none. */
  expiresAt(now: number, policy?: string): number {
    return this.#key.number(now, "expiresAt", 0, policy);
  }

  /**
   * Denies every hit for so long, or changes the end of the ban that holds. Returns the end, in milliseconds since the
   * epoch.
   */
  ban(now: number, length: Duration, policy?: string): number {
    return this.#key.number(now, "ban", banLength(length), policy);
  }

  /** Lifts a ban and forgets past ones. Returns true if one held. */
  unban(now: number, policy?: string): boolean {
    return this.#key.number(now, "unban", 0, policy) > 0;
  }

  /**
   * Gives the key other numbers until a time, or allows or denies everything; `null` lifts that. It replaces the exception
   * that the key has. Returns its end; with `null`, when it would have ended, or 0 if there was none.
   */
  except(now: number, exception: Exception, end: ExceptionEnd): number;
  except(now: number, exception: null): number;
  except(now: number, exception: Exception | null, end?: ExceptionEnd): number {
    if (exception === null) return this.exceptUntil(now, [], 0);
    const parts = readException(exception, this.#key.read);
    return this.exceptUntil(now, parts, endAt(readEnd(end), checkTime(now)));
  }

  /**
   * Does so by what was read of an exception.
   * @internal
   */
  exceptUntil(now: number, parts: readonly ExceptionPart[], until: number): number {
    const key = this.#key;
    const ends = key.writable(now).except(key.slot, flatParts(parts, key.names, until, now), now);
    key.follow();
    if (ends <= status.at) throw unfit(this.#key.read, parts, status.at - ends, true);
    if (ends < 0) throw outOfMemory();
    return ends;
  }

  /**
   * Reads an exception under these policies.
   * @internal
   */
  readException(exception: Exception): readonly ExceptionPart[] {
    return readException(exception, this.#key.read);
  }

  /**
   * Reads the policies of a call, and returns their copies.
   * @internal
   */
  readPolicies(policies: unknown): readonly Policy[] {
    return ReadPolicies.of(policies).policies;
  }

  /** Returns the exception of the key; `null` if it has none. */
  exceptions(now: number): KeyException | null {
    const key = this.#key;
    const [, numbers] = savedNumbers(key.ready(now), key.slot, now);
    return keyException(saved(numbers), key.names, now);
  }

  /**
   * Removes the states, and returns true if there were any. Reservations stay open, unless `reservations` is true. An
   * exception stays.
   */
  reset(now: number, options: { readonly reservations?: boolean | undefined } = {}): boolean {
    return this.#key.reset(now, readReservations(options));
  }

  /**
   * Performs an operation that is data.
   * @internal
   */
  perform(now: number, operation: KeyOperation): unknown {
    switch (operation.name) {
      case "hit":
        return this.hitUndoable(now, operation.cost, operation.policies);
      case "reserve":
        return this.reserve(now, operation.cost, { ttl: operation.ttl, policies: operation.policies });
      case "inc":
        return this.inc(now, operation.cost, operation.of);
      case "set":
        return this.set(now, operation.count, operation.of);
      case "get":
        return this.get(now, operation.of);
      case "expires_at":
        return this.expiresAt(now, operation.of);
      case "ban":
        return this.ban(now, operation.for, operation.of);
      case "unban":
        return this.unban(now, operation.of);
      case "exceptions":
        return this.exceptions(now);
      case "reset":
        return this.reset(now, { reservations: operation.reservations });
      default:
        // The compiler names an operation that is missing here.
        throw operation satisfies never;
    }
  }

  /** Frees the memory. That of a ledger that is not disposed of is freed with it, by the garbage collector. */
  [Symbol.dispose](): void {
    this.#key.dispose();
  }

  #decide(
    now: number,
    cost: Costs,
    policies: Policies | undefined,
    kind: number,
    reserved?: Reserved,
  ): Decision {
    const call = policies === undefined ? undefined : readCall(policies);
    const costs = typeof cost === "number" ? undefined : costsByPosition(cost, this.#key.read);
    return this.#key.decide(now, kind, cost, costs, call, reserved);
  }

  /** Settles a reservation; with a `ttl` above 0, moves its end. */
  #close(
    now: number,
    bits: readonly number[],
    end: number,
    costs: readonly number[],
    ttl: number,
  ): Settlement | Extension {
    const { instance } = this.#key.writable(now);
    instance.writeCosts(costs);
    instance.writeReservation(bits, ttl, end);
    const code = this.#change(now, "settle", ({ close_reservation: close }, index, generation, slot) =>
      close(index, generation, slot, now, Number(ttl > 0)),
    );
    return settlements[code] as Settlement | Extension;
  }

  /** Performs other work on the slot, follows the key, and returns a number. `name` is that of the operation. */
  #change(
    now: number,
    name: string,
    work: (exports: Exports, index: number, generation: number, slot: number) => number,
    cost?: Costs,
  ): number {
    const key = this.#key;
    const number = key
      .writable(now)
      .run((exports, index, generation) => work(exports, index, generation, key.slot));
    key.follow();
    if (number < 0) throw key.error(number, name, cost);
    return number;
  }

  #defaultTtl(now: number): number {
    return this.#key
      .ready(now)
      .run(({ count }, index, generation) => count(index, generation, operation.defaultTtl, -1, 0, 0, 0));
  }
}
