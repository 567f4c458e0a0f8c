import { checkKey } from "../checks.ts";
import { outOfMemory, TollgateError, worded, wrongAmount } from "../errors/error.ts";
import { uncountable } from "../policy/bans.ts";
import type { ReadPolicies } from "../policy/policies.ts";
import { checkTime, invalidTime } from "../time.ts";
import type { Algorithm, Expired, Key } from "../types.ts";
import { fullText, manyExceptionsText, rowNumbersText, status } from "../wasm/generated.ts";
import { SlotLimiter } from "../wasm/slot-limiter.ts";
import { copiedLists, Rows, ShapeNames, unreadable } from "../wasm/states.ts";
import type { ReadOptions } from "./options.ts";
import type { ReadSnapshot } from "./snapshot.ts";

/**
 * The states of a limiter's keys: a limiter of the wasm, and the slot of each key in it. They survive a trap of the wasm,
 * and an operation that is interrupted.
 */
export class LimiterStates {
  limiter: SlotLimiter;
  slots = new Map<Key, number>();
  /** The names of shapes. */
  readonly names: ShapeNames;
  /**
   * Set while the wasm may have moved slots that the maps do not show yet. The moves of an interrupted operation are
   * acknowledged by the next one.
   */
  hasMoves = false;
  /** The key whose operation moved slots. */
  moving: Key | undefined;
  disposed = false;
  readonly #read: ReadPolicies;
  readonly #options: ReadOptions;
  /** The keys by slot. */
  #keys: (Key | undefined)[] = [];
  /** How many keys were evicted in instances of the wasm that are gone. */
  #evictedBefore = 0;
  #warned = false;

  constructor(read: ReadPolicies, options: ReadOptions) {
    this.#read = read;
    this.#options = options;
    this.names = new ShapeNames(read.names);
    this.limiter = this.#emptyLimiter();
  }

  /** The number of keys, including expired ones that have not been cleaned yet. */
  get size(): number {
    this.#checkDisposed();
    return this.slots.size;
  }

  /** How many live keys were evicted because the limiter was full. */
  get evicted(): number {
    this.#checkDisposed();
    const { instance, index, generation } = this.limiter;
    return this.#evictedBefore + instance.evicted(index, generation);
  }

  /** Returns the slot of a key; -1 if it has none. */
  slotOf(key: Key): number {
    const slot = this.slots.get(key);
    if (slot === undefined) {
      checkKey(key);
      return -1;
    }
    return slot;
  }

  /** Frees the slot of a key and removes the key; -1 only checks that the limiter is there. */
  release(slot: number): void {
    const code = this.limiter.run(({ release }, index, generation) => release(index, generation, slot >>> 0));
    if (code < 0) throw this.error(code);
    if (slot >= 0) this.#remove(slot);
  }

  /** Performs an operation on a key, and takes over what it moved, whatever it returns. */
  operate(key: Key, work: (limiter: SlotLimiter) => number): number {
    this.hasMoves = true;
    this.moving = key;
    const code = work(this.limiter);
    this.settle();
    return code;
  }

  /** Takes over what the operation that just ended moved, if anything. */
  settle(): void {
    if (this.limiter.instance.hasMoved()) this.acknowledge();
    else this.hasMoves = false;
  }

  /** Returns the error of a hit that just failed, after taking over what it moved. */
  failed(code: number, cost: unknown, now: unknown): TollgateError {
    if (this.hasMoves) this.settle();
    return this.error(code, cost, now);
  }

  /** Settles the moves of an interrupted operation, and moves to another instance of the wasm if this one is broken. */
  prepare(now: number): void {
    // In a loop, since `beforeClean` may have used the limiter.
    do {
      this.#checkDisposed();
      if (this.limiter.instance.broken) this.#recover(now);
      if (this.hasMoves) this.acknowledge();
    } while (this.hasMoves || this.disposed || this.limiter.instance.broken);
  }

  /** Takes over the slots that the operation on the moving key took and freed, and reports expired states. */
  acknowledge(): void {
    this.#report(this.#takeMoves());
  }

  /** Removes every expired key, and returns how many there were. */
  clean(now: number): number {
    this.prepare(now);
    let removed = 0;
    // In parts, so that the reports of a million keys are never in memory at once.
    for (let from = 0; from >= 0; ) {
      // `beforeClean` may have used the limiter.
      this.prepare(now);
      // Slots that are freed before a failure must be acknowledged as well.
      this.hasMoves = true;
      const next = this.limiter.run(({ clean }, index, generation) => clean(index, generation, now, from));
      const before = this.slots.size;
      const expired = this.#takeMoves();
      const freed = before - this.slots.size;
      removed += freed;
      this.#report(expired);
      // Out of memory for the reports of a part, it goes on as long as some keys are freed.
      if (next < 0 && freed === 0) throw this.error(next);
      if (next >= 0) from = next - 1;
    }
    return removed;
  }

  /**
   * Reads all states of a snapshot into a limiter without these keys, or none on an error. `made` are its policies. With
   * `warns`, a policy that starts unused is named on the console.
   */
  restore(made: ReadPolicies, { keys, names }: ReadSnapshot, warns = true): void {
    const now = checkTime(this.#options.clock());
    const all = keys.map(([key, lists]) => {
      const rows = new Rows(this.names);
      for (const [name = -1, ...row] of copiedLists(lists, key)) {
        const known = made.names[name] ?? names[name - made.names.length];
        if (known === undefined) throw unreadable(rowNumbersText, key);
        rows.add(known, row);
      }
      return [key, rows] as const;
    });
    let afresh = 0;
    for (const [key, states] of all) afresh |= this.#load(-1, key, states, now, false);
    for (const [position, name] of this.#read.names.entries())
      if (warns && (afresh >>> position) & 1)
        console.warn(`tollgate: the policy ${name} starts unused; the snapshot has another shape for it.`);
    for (const [key, states] of all) {
      this.#load(this.slotOf(key), key, states, now, true);
    }
  }

  /** Frees the memory. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.limiter.free();
    this.slots = new Map();
    this.#keys = [];
    this.hasMoves = false;
  }

  /** Returns the error for a negative status. */
  error(code: number, cost?: unknown, now?: unknown, operation = "hit"): TollgateError {
    if (code <= status.uncountable && code > status.at)
      return uncountable(this.#read, status.uncountable - code, operation);
    switch (code) {
      case status.invalidCost:
        return wrongAmount("cost", cost);
      case status.invalidTime:
        return invalidTime(now);
      case status.outOfMemory:
        return outOfMemory();
      case status.noRoom:
        return worded("full", fullText, { found: this.#options.maxKeys });
      case status.manyExceptions:
        return worded("full", manyExceptionsText, { found: this.#options.maxKeys });
      default:
        return new TollgateError("disposed", "this limiter was disposed of; make a new one");
    }
  }

  #checkDisposed(): void {
    if (this.disposed) throw this.error(status.invalidHandle);
  }

  #emptyLimiter(): SlotLimiter {
    return new SlotLimiter(this.#read, this.#options, this.#options.beforeClean !== undefined);
  }

  /** Removes the keys of freed slots, assigns the moving key its slot, and returns the expired states, by policy. */
  #takeMoves(): Expired[][] {
    const { limiter } = this;
    const expired = this.#move(limiter.moves());
    // Only now: if this is interrupted before, the next operation finds the same moves.
    limiter.run(({ acknowledge }, index, generation) => acknowledge(index, generation));
    this.hasMoves = false;
    this.moving = undefined;
    return expired;
  }

  /** Calls `beforeClean` with the expired states of each policy. */
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

  /** Updates the maps by a list of moves. It may be repeated for the same list. */
  #move(list: readonly number[]): Expired[][] {
    const [taken = -1, count = 0] = list;
    const expired = this.#options.beforeClean === undefined ? [] : this.#expired(list, 2 + count);
    for (let at = 2; at < 2 + count; at++) this.#remove(list[at] as number);
    if (taken >= 0 && this.moving !== undefined) {
      this.slots.set(this.moving, taken);
      this.#keys[taken] = this.moving;
    }
    return expired;
  }

  /** Removes the key of a freed slot. */
  #remove(slot: number): void {
    const key = this.#keys[slot];
    if (key === undefined) return;
    if (this.slots.get(key) === slot) this.slots.delete(key);
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

  /**
   * Reads one key's states into a slot; without `put` it only checks them. Returns which policies start unused, as bits by
   * their positions.
   */
  #load(slot: number, key: Key, states: Rows, now: number, put: boolean): number {
    const code = this.operate(key, (limiter) => limiter.load(slot, now, states.numbers, put));
    if (code <= status.at) throw states.error(status.at - code, key);
    if (code < 0) throw this.error(code);
    return code;
  }

  /**
   * Moves all states from a broken instance of the wasm to the current one. Keys whose states cannot be read there
   * start afresh, and `state_lost` is thrown once.
   */
  #recover(now: number): void {
    checkTime(now);
    const { instance, index, generation } = this.limiter;
    instance.revive();
    const expired = readBroken(() => this.#move(instance.moves(index, generation)));
    const evicted = readBroken(() => instance.evicted(index, generation));
    const fresh = this.#emptyLimiter();
    const keys: Key[] = [];
    let isReadable = expired !== undefined && evicted !== undefined;
    let lost = !isReadable;
    let hasSameSlots = true;
    // One by one, so that the states of a million keys are not in memory three times.
    for (const [slot, key] of this.#keys.entries()) {
      if (key === undefined) continue;
      const numbers = isReadable ? readBroken(() => instance.rescued(index, generation, slot)) : undefined;
      isReadable &&= numbers !== undefined;
      const isLost = numbers === undefined || fresh.load(-1, now, numbers, true) < 0;
      const [taken = -1] = isLost ? [] : fresh.takeMoves();
      lost ||= isLost;
      hasSameSlots &&= taken === slot;
      if (taken >= 0) keys[taken] = key;
    }
    hasSameSlots &&= keys.length === this.slots.size;
    // Most often no slot was free, and each key has its slot again.
    const slots = hasSameSlots ? this.slots : new Map(keys.map((key, slot) => [key, slot]));
    // Nothing below can fail. After an error above, the next operation tries again: the stack may have room then.
    this.#evictedBefore += evicted ?? 0;
    this.limiter = fresh;
    this.slots = slots;
    this.#keys = keys;
    this.hasMoves = false;
    this.#report(expired ?? []);
    if (lost)
      throw new TollgateError(
        "state_lost",
        "states of this limiter were lost in a trap; those keys start afresh; see docs/troubleshooting.md",
      );
  }
}

/** Reads from a broken instance; `undefined` if that traps. */
function readBroken<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) return undefined;
    throw error;
  }
}
