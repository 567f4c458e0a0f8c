import { outOfMemory, type TollgateError, wrongAmount, wrongInc } from "../errors/error.ts";
import { banPosition, uncountable } from "../policy/bans.ts";
import { type ReadCall, ReadPolicies } from "../policy/policies.ts";
import type { Costs, Decision, State } from "../types.ts";
import { namesIn } from "../wasm/decision-numbers.ts";
import { hitKind, operation, status } from "../wasm/generated.ts";
import { Results } from "../wasm/results.ts";
import { SlotLimiter } from "../wasm/slot-limiter.ts";
import { ShapeNames } from "../wasm/states.ts";
import { readOptions } from "./options.ts";
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
 * The operations on one policy.
 * @internal
 */
export type Counting = "inc" | "set" | "get" | "expiresAt" | "ban" | "unban";

/**
 * What `Ledger` and `step` have in common: the states of one key, in a slot of their own. They are loaded once.
 * @internal
 */
export class LoadedKey {
  readonly read: ReadPolicies;
  names: ShapeNames;
  /** The slot of the key; -1 if it is as if never used. */
  slot = -1;
  readonly #results: Results;
  limiter: SlotLimiter;
  /** The states before the first operation that may have changed them, as a text. */
  before: string | undefined;

  constructor(policies: unknown) {
    const read = new ReadPolicies(policies);
    this.read = read;
    this.#results = new Results(read.names);
    this.names = new ShapeNames(read.names);
    this.limiter = newSlots(read);
  }

  /** Loads a stored state, if there is one, where there are no states. Returns the names of the policies that start unused. */
  load(now: number, state: State | null): string[] {
    if (state == null) return [];
    const afresh = loadStates(this.limiter, readState(state, this.names), now);
    this.follow();
    return namesIn(afresh, this.read.names);
  }

  /** Returns the states as they are to be stored. */
  save(now: number): SavedLedger {
    const [expiresAt, numbers] = savedNumbers(this.ready(now), this.slot, now);
    return {
      state: stateOf(numbers, this.names, now),
      expiresAt,
      changed: this.before !== undefined && this.before !== `${numbers}`,
    };
  }

  /** Hits, peeks or reserves, by the kind. `costs` are those by position; without them `cost` is for all policies. */
  decide(
    now: number,
    kind: number,
    cost: Costs,
    costs?: readonly number[],
    call?: ReadCall,
    reserved?: Reserved,
  ): Decision {
    const limiter = kind === hitKind.peek ? this.ready(now) : this.writable(now);
    const code = hitSlot(limiter, this.slot, cost, costs, call, now, kind, reserved);
    this.follow();
    if (code < 0) throw this.error(code, kind === hitKind.reserve ? "reserve" : "hit", cost, call?.copies);
    return this.#results.decision(limiter.instance, code);
  }

  /** Performs an operation on one policy, and returns its number. */
  number(now: number, kind: Counting, amount: number, policy: string | undefined): number {
    const isBan = kind === "ban" || kind === "unban";
    const position = isBan ? banPosition(this.read, policy) : this.read.position(policy);
    const limiter = kind === "get" || kind === "expiresAt" ? this.ready(now) : this.writable(now);
    const count = (kind: number, amount: number) =>
      limiter.run(({ count }, index, generation) =>
        count(index, generation, kind, this.slot, amount, now, position),
      );
    const value = count(operation[kind], typeof amount === "number" ? amount : Number.NaN);
    this.follow();
    if (value === status.invalidAmount)
      throw kind === "set" ? wrongAmount("count", amount, count(operation.maxCount, 0)) : wrongInc(amount);
    if (value < 0) throw this.error(value, kind);
    return value;
  }

  /** Removes the states, and returns true if there were any. */
  reset(now: number, reservations: boolean): boolean {
    const limiter = this.writable(now);
    const { slot } = this;
    if (slot < 0) return false;
    const left = limiter.run(({ reset }, index, generation) =>
      reset(index, generation, slot, Number(reservations), now),
    );
    this.follow();
    if (left < 0) throw outOfMemory();
    if (left === 0) this.release();
    return true;
  }

  /** Returns the limiter for an operation that only reads. */
  ready(_now: number): SlotLimiter {
    return this.limiter;
  }

  /** Returns the limiter for an operation that may change the states. */
  writable(now: number): SlotLimiter {
    const limiter = this.ready(now);
    this.before ??= `${savedNumbers(limiter, this.slot, now)[1]}`;
    return limiter;
  }

  /** Follows the key to the slot that it took. */
  follow(): void {
    this.slot = this.limiter.moves()[0] ?? -1;
  }

  /** Leaves the slot of a key that is as if never used. */
  release(): void {
    this.slot = -1;
  }

  /** Returns the error for a status below 0. */
  error(code: number, operation: string, cost?: unknown, _call?: unknown): TollgateError {
    if (code <= status.uncountable && code > status.at)
      return uncountable(this.read, status.uncountable - code, operation);
    return code === status.invalidCost ? wrongAmount("cost", cost) : noRoom(code);
  }
}

/**
 * Returns slots for one key.
 * @internal
 */
export const newSlots = (read: ReadPolicies): SlotLimiter =>
  new SlotLimiter(read, readOptions({}), false, true);
