import { share, Replicas as WasmReplicas } from "../../build/redis/tollgate.js";
import { TollgateError } from "../errors/error.ts";
import { noRoom } from "../limiter/stored-states.ts";
import type { ReadPolicies } from "../policy/policies.ts";
import type { Decision, Policy, Settlement } from "../types.ts";
import type { Numbers } from "../wasm/decision-numbers.ts";
import { reasons, replay, status, verdict } from "../wasm/generated.ts";
import { instanceOf, isLost } from "../wasm/wasm-module.ts";
import { disposed, rejectedOperation, stateLost } from "./errors.ts";
import type { Operation, Read } from "./operation.ts";
import { redisModule, run } from "./wasm.ts";

const { kind: kinds, numbersPerOutcome, numbersPerResult } = replay;

/** What the reply for a key came to. */
export interface Outcome {
  readonly status: number;
  /** The position of the first result of the own entry. */
  readonly first: number;
  /** When the last state of the key ends, if the own entry was replayed; 0 otherwise. */
  readonly endsAt: number;
}

/** The decision of a reservation, and when the reservation ends; 0 if it was denied. */
export interface Reserved {
  readonly decision: Decision;
  readonly end: number;
}

/** The decision of a hit that can be undone, and its id without random bits; `undefined` if it charged nothing. */
export interface HitResult {
  readonly decision: Decision;
  readonly id: string | undefined;
}

/** The outcome of closing a reservation, or the new end of one that was extended. */
type Closing = Settlement | number;

/** The result of a replayed operation, or why the operation was rejected. */
export type Result = Decision | number | HitResult | Reserved | Closing | Numbers | TollgateError;

const encoder = new TextEncoder();

/** The least room for texts in the wasm, in bytes. */
const minRoom = 2_048;

const noNames: readonly string[] = Object.freeze([]);

/** Returns true for operations whose results are texts or have one. */
const hasText = (kind: Operation["kind"]): boolean => kind === "l" || kind === "y" || kind === "exception";

/** The states of a limiter's keys in the wasm (`bindings/redis`), by slot: replicas of the values in Redis. */
export class Replicas {
  /** The policies as entries have them. */
  readonly policiesText: string;
  /** The longest lifetime of a state after a hit without debt, in milliseconds. */
  readonly longest: number;
  /** The duration of a reservation without a `ttl`, in milliseconds. */
  readonly defaultTtl: number;
  readonly #names: readonly string[];
  /** The violated policies of a denial where there is only one policy. */
  readonly #frozenNames: readonly string[];
  readonly #json: string;
  #replicas: WasmReplicas;
  #generation: number;
  #isFreed = false;
  #numbers = new Float64Array();
  /** Where the wasm reads texts. */
  #input = new Uint8Array();

  constructor(read: ReadPolicies) {
    this.#names = read.names;
    this.#frozenNames = Object.freeze([...read.names]);
    this.#json = JSON.stringify(read.policies);
    this.#replicas = this.#create();
    this.#generation = redisModule.generation;
    this.policiesText = run(() => this.#replicas.policiesText());
    this.longest = run(() => this.#replicas.longest());
    this.defaultTtl = run(() => this.#replicas.defaultTtl());
  }

  /** Whether a trap has ended the instance of the wasm, and with it all slots. */
  get isLost(): boolean {
    return isLost(redisModule, this.#generation);
  }

  /** Creates the replicas again, without slots, in the current instance. */
  recreate(): void {
    this.#replicas = this.#create();
    this.#generation = redisModule.generation;
    this.#numbers = new Float64Array();
    this.#input = new Uint8Array();
  }

  /** Frees the memory of all slots. */
  free(): void {
    if (!this.#isFreed && !this.isLost) run(() => this.#replicas.free());
    this.#isFreed = true;
  }

  #create(): WasmReplicas {
    instanceOf(redisModule);
    return run(() => new WasmReplicas(this.#json));
  }

  /**
   * Runs `work` on the slots. The glue's objects are never used after they were freed or their instance was lost: its error
   * would be taken for a trap, and end the instance that other limiters use.
   */
  #onSlots<Value>(work: (replicas: WasmReplicas) => Value): Value {
    if (this.#isFreed) throw disposed();
    if (this.isLost) throw stateLost();
    try {
      return run(() => work(this.#replicas));
    } catch (error) {
      throw error instanceof TollgateError ? error : stateLost(error);
    }
  }

  /** Runs `work` that needs no slot, on replicas of its own if the slots were lost. */
  #onPolicies<Value>(work: (replicas: WasmReplicas) => Value): Value {
    if (this.#isFreed || !this.isLost) return this.#onSlots(work);
    const own = this.#create();
    try {
      return run(() => work(own));
    } finally {
      run(() => own.free());
    }
  }

  /** Returns the text of a call's policies; empty if they do not fit the limiter's own. */
  callText(policies: readonly Policy[]): string {
    return this.#onPolicies((replicas) => replicas.callText(JSON.stringify(policies)));
  }

  /** Whether hits may be allowed from leases under these policies. */
  get mayLease(): boolean {
    return this.#onPolicies((replicas) => replicas.mayLease());
  }

  /** Throws if the policies cannot take the fields of an exception. */
  checkException(fields: string): void {
    this.#onPolicies((replicas) => replicas.checkException(fields));
  }

  /** Returns the highest count that the policy at a position can be set to. */
  maxCount(position: number): number {
    return this.#onPolicies((replicas) => replicas.maxCount(position));
  }

  /** Takes a slot; a status below 0 if there is no memory. */
  take(): number {
    return this.#onSlots((replicas) => replicas.take());
  }

  release(slot: number): void {
    this.#onSlots((replicas) => replicas.release(slot));
  }

  /** Resets the states of a slot. */
  forget(slot: number): void {
    this.#onSlots((replicas) => replicas.forget(slot));
  }

  /**
   * Replays the replies to one call: for each slot a text as `log.lua` replies it. `own` is the tag of the call's entries.
   * Returns what each of them came to; `undefined` if there is no memory.
   */
  replayAll(
    slots: readonly number[],
    texts: readonly string[],
    own: string,
    now: number,
  ): Outcome[] | undefined {
    let input = own;
    let index = 0;
    for (const slot of slots) {
      const text = texts[index++] as string;
      // A line end is in no value, so a text that has one cannot be read; its kind says so.
      input += text.includes("\n") ? `\n${slot}?` : `\n${slot}${text}`;
    }
    const address = this.#onSlots((replicas) => {
      const length = this.#write(replicas, input);
      return length < 0 ? 0 : replicas.replayAll(length, now);
    });
    if (address === 0) return undefined;
    const numbers = this.#memory();
    const outcomes: Outcome[] = [];
    for (let at = address >>> 3; outcomes.length < slots.length; at += numbersPerOutcome)
      outcomes.push({
        status: numbers[at] as number,
        first: numbers[at + 1] as number,
        endsAt: numbers[at + 2] as number,
      });
    return outcomes;
  }

  /** Writes a text where the wasm reads it. Returns its length in bytes; -1 if there is no memory. */
  #write(replicas: WasmReplicas, text: string): number {
    // The most bytes that it can take. The view is empty after the memory has grown.
    const needed = 3 * text.length;
    if (this.#input.length < needed) {
      const room = Math.max(needed, 2 * this.#input.length, minRoom);
      const address = replicas.input(room);
      if (address === 0) return -1;
      this.#input = new Uint8Array(instanceOf(redisModule).memory.buffer, address, room);
    }
    return encoder.encodeInto(text, this.#input).written;
  }

  /** Loads a value of another line than the slot's, unless the slot's states know more. Returns the status. */
  meet(slot: number, value: string, now: number): number {
    return this.#onSlots((replicas) => replicas.meet(slot, value, now));
  }

  /** Returns a base with the states of a slot, without its mark. */
  base(slot: number): string {
    return this.#onSlots((replicas) => replicas.base(slot));
  }

  /** Returns a base that drops policies which nobody uses any more, without its mark; empty if there are too few. */
  newBeginning(slot: number): string {
    return this.#onSlots((replicas) => replicas.newBeginning(slot));
  }

  /** Returns a base that restores a key, without its mark. */
  restoringBase(slot: number): string {
    return this.#onSlots((replicas) => replicas.restoringBase(slot));
  }

  /** Adds the result of a reading operation to the results. Returns a status below 0 if that fails. */
  read(slot: number, { kind, text, position, callText }: Operation, now: number): number {
    const reading = replay.reading[kind as Read];
    return this.#onSlots((replicas) => replicas.read(slot, reading, text, position, callText, now));
  }

  /** Returns when the last state of a slot ends; 0 if all have ended. */
  endsAt(slot: number, now: number): number {
    return this.#onSlots((replicas) => replicas.endsAt(slot, now));
  }

  /**
   * Returns the decision of a hit that is denied at every moment from `earliest` to `latest`; `undefined` otherwise, after
   * a trap, and while leases are open unless `besideLeases` is set.
   */
  deny(
    slot: number,
    cost: number,
    earliest: number,
    latest: number,
    besideLeases: boolean,
  ): Decision | undefined {
    // Kept short: most of the work under a flood of denials is here.
    let address: number;
    try {
      address = this.#replicas.deny(slot, cost, earliest, latest, besideLeases);
    } catch {
      redisModule.instance = undefined;
      return undefined;
    }
    return address === 0 ? undefined : (this.#parsed(this.#memory(), address >>> 3) as Decision);
  }

  /** Returns the results of operations in their order, of which the first is at a position; by default the last ones. */
  results(operations: readonly Operation[], first?: number): Result[] {
    const address = this.#onSlots((replicas) => replicas.resultsAddress()) >>> 3;
    const start = first ?? this.#onSlots((replicas) => replicas.resultsCount()) - operations.length;
    const numbers = this.#memory();
    const results: Result[] = [];
    let at = address + start * numbersPerResult;
    let hasTexts = false;
    for (const { kind } of operations) {
      results.push(this.#result(kind, numbers, at));
      at += numbersPerResult;
      hasTexts ||= hasText(kind);
    }
    // Last, since creating a text may grow the memory and detach `numbers`.
    if (hasTexts)
      for (const [index, { kind }] of operations.entries())
        if (hasText(kind) && !(results[index] instanceof TollgateError)) {
          const text = this.#text(start + index);
          results[index] =
            kind === "y" ? { decision: results[index] as Decision, id: text } : (text as Numbers);
        }
    return results;
  }

  /** Returns the result at an index as a text: the numbers of a decision and its lease, or an exception. */
  #text(index: number): Numbers | undefined {
    return this.#onSlots((replicas) => replicas.text(index));
  }

  #result(kind: Operation["kind"], numbers: Float64Array, at: number): Result {
    const result = this.#parsed(numbers, at);
    if (result instanceof TollgateError) return result;
    const end = numbers[at + 8] as number;
    if (kind === "v") return { decision: result as Decision, end };
    if (kind !== "t" && kind !== "x") return result;
    const outcome = replay.settlements[result as number] as Settlement | "extended";
    return outcome === "extended" ? end : outcome;
  }

  /** Returns the memory as numbers. A view is empty after the memory has grown, and is then replaced. */
  #memory(): Float64Array {
    if (this.#numbers.length === 0) this.#numbers = new Float64Array(instanceOf(redisModule).memory.buffer);
    return this.#numbers;
  }

  /** Parses a decision or a number, or why the operation was rejected. */
  #parsed(numbers: Float64Array, at: number): Decision | number | TollgateError {
    const kind = numbers[at];
    if (kind === kinds.number) return numbers[at + 1] as number;
    if (kind === kinds.rejected) return rejectedOperation();
    if (kind === kinds.manyRows) return noRoom(status.manyRows);
    const isAllowed = kind === verdict.allowed;
    const decision = {
      allowed: isAllowed,
      count: numbers[at + 1] as number,
      limit: numbers[at + 2] as number,
      remaining: numbers[at + 3] as number,
      retryAfter: numbers[at + 4] as number,
      resetAfter: numbers[at + 5] as number,
      moreAfter: numbers[at + 9] as number,
      policy: this.#names[numbers[at + 6] as number] as string,
      violated: isAllowed ? noNames : this.#violated(numbers[at + 7] as number),
    };
    const reason = reasons[kind as keyof typeof reasons];
    return reason === undefined ? decision : { ...decision, reason };
  }

  #violated(bits: number): readonly string[] {
    if (bits === 1 && this.#frozenNames.length === 1) return this.#frozenNames;
    return this.#names.filter((_, position) => (bits >>> position) & 1);
  }
}

/** Returns policies that allow a part of what these allow, above 0 and up to 1. */
export function sharedPolicies(policies: readonly Policy[], part: number): Policy[] {
  instanceOf(redisModule);
  return JSON.parse(run(() => share(JSON.stringify(policies), Math.floor(part * 1e6))));
}
