import { share as sharedPolicies, Replicas as WasmReplicas } from "../../build/redis/tollgate.js";
import { replay } from "../core/generated.ts";
import type { Numbers } from "../numbers.ts";
import type { ReadPolicies } from "../policies.ts";
import type { Decision, Policy, Settlement } from "../types.ts";
import type { Operation, Read } from "./operation.ts";
import { generation, instance, isGone, lose, run } from "./wasm.ts";

const { kind: kinds, numbersPerResult } = replay;

/** A decision, and when the reservation ends that it opened; 0 if it was denied. */
export interface Reserved {
  readonly decision: Decision;
  readonly end: number;
}

/** What became of a reservation: a word, or its new end. */
export type Closing = Settlement | number;

/** A result of a replayed operation; `undefined` if it was rejected. */
export type Result = Decision | number | Reserved | Closing | Numbers | undefined;

const nobody: readonly string[] = Object.freeze([]);

/** The replicas of a limiter's keys in the wasm, by slot: a cache of what Redis holds. */
export class Replicas {
  readonly policiesText: string;
  readonly fingerprint: string;
  readonly shape: string;
  readonly longest: number;
  /** How long a reservation lasts that does not say. */
  readonly defaultTtl: number;
  readonly #names: readonly string[];
  readonly #alone: readonly string[];
  readonly #json: string;
  readonly #process: string;
  #replicas: WasmReplicas;
  #generation: number;
  #numbers = new Float64Array();

  constructor(read: ReadPolicies, process: string) {
    this.#names = read.names;
    this.#alone = Object.freeze([...read.names]);
    this.#json = JSON.stringify(read.policies);
    this.#process = process;
    this.#replicas = this.#made();
    this.#generation = generation();
    this.policiesText = run(() => this.#replicas.policiesText());
    this.fingerprint = run(() => this.#replicas.fingerprint());
    this.shape = run(() => this.#replicas.shape());
    this.longest = run(() => this.#replicas.longest());
    this.defaultTtl = run(() => this.#replicas.defaultTtl());
  }

  /** Returns true if a trap has ended the instance that held the replicas; then all slots are gone. */
  get isLost(): boolean {
    return isGone(this.#generation);
  }

  /** Starts anew in the instance in use. */
  startAnew(): void {
    this.#replicas = this.#made();
    this.#generation = generation();
    this.#numbers = new Float64Array();
  }

  /** Gives the memory of all slots back. */
  free(): void {
    if (!this.isLost) run(() => this.#replicas.free());
  }

  #made(): WasmReplicas {
    instance();
    return run(() => new WasmReplicas(this.#json, this.#process));
  }

  /** Returns the text of a call's policies; empty if they do not fit the limiter's own. */
  callText(policies: readonly Policy[]): string {
    return run(() => this.#replicas.callText(JSON.stringify(policies)));
  }

  /** Whether hits may be leased. */
  get mayLease(): boolean {
    return run(() => this.#replicas.mayLease());
  }

  maxCount(position: number): number {
    return run(() => this.#replicas.maxCount(position));
  }

  take(): number {
    return run(() => this.#replicas.take());
  }

  release(slot: number): void {
    run(() => this.#replicas.release(slot));
  }

  forget(slot: number): void {
    run(() => this.#replicas.forget(slot));
  }

  load(slot: number, value: string, number: number): number {
    return run(() => this.#replicas.load(slot, value, number));
  }

  replay(slot: number, entries: string, number: number): number {
    return run(() => this.#replicas.replay(slot, entries, number));
  }

  base(slot: number): string {
    return run(() => this.#replicas.base(slot));
  }

  /** Adds the result of an operation that only reads. Returns a status below 0 if that fails. */
  read(slot: number, { kind, text, position, call }: Operation, now: number): number {
    const question = replay.reading[kind as Read];
    return run(() => this.#replicas.read(slot, question, text, position, call, now));
  }

  endsAt(slot: number, now: number): number {
    return run(() => this.#replicas.endsAt(slot, now));
  }

  /**
   * Returns the decision of a hit that is denied at every moment from `earliest` to `latest`; `undefined` otherwise. Where
   * leases are open, it is told only `besideLeases`.
   */
  deny(
    slot: number,
    cost: number,
    earliest: number,
    latest: number,
    besideLeases: boolean,
  ): Decision | undefined {
    // Kept short: under a flood of denials it is all that happens.
    let address: number;
    try {
      address = this.#replicas.deny(slot, cost, earliest, latest, besideLeases);
    } catch (error) {
      lose();
      throw error;
    }
    return address === 0 ? undefined : (this.#result(this.#look(), address >>> 3) as Decision);
  }

  /** Returns the results of operations, in order, since the last replay. */
  results(operations: readonly Operation[]): Result[] {
    const address = run(() => this.#replicas.resultsAddress());
    const numbers = this.#look();
    const results = operations.map(({ kind }, number) =>
      this.#resultOf(kind, numbers, (address >>> 3) + number * numbersPerResult),
    );
    // The memory may grow when a text is made, and then the numbers are gone.
    for (const [number, { kind }] of operations.entries())
      if (kind === "l" && results[number] !== undefined) results[number] = this.#lease(number);
    return results;
  }

  /** Returns the numbers of the decision and the lease that the result at a place is. */
  #lease(place: number): Numbers | undefined {
    return run(() => this.#replicas.lease(place));
  }

  #resultOf(kind: Operation["kind"], numbers: Float64Array, at: number): Result {
    const result = this.#result(numbers, at);
    if (result === undefined) return undefined;
    const end = numbers[at + 8] as number;
    if (kind === "v") return { decision: result as Decision, end };
    if (kind !== "t" && kind !== "x") return result;
    const word = replay.settlements[result as number] as Settlement | "extended";
    return word === "extended" ? end : word;
  }

  /** Returns the memory as numbers, which are views of another buffer after it has grown. */
  #look(): Float64Array {
    if (this.#numbers.length === 0) this.#numbers = new Float64Array(instance().memory.buffer);
    return this.#numbers;
  }

  #result(numbers: Float64Array, at: number): Decision | number | undefined {
    const kind = numbers[at];
    if (kind === kinds.number) return numbers[at + 1];
    if (kind === kinds.rejected) return undefined;
    const isAllowed = kind === kinds.allowed;
    const decision = {
      allowed: isAllowed,
      count: numbers[at + 1] as number,
      limit: numbers[at + 2] as number,
      remaining: numbers[at + 3] as number,
      retryAfter: numbers[at + 4] as number,
      resetAfter: numbers[at + 5] as number,
      policy: this.#names[numbers[at + 6] as number] as string,
      violated: isAllowed ? nobody : this.#violated(numbers[at + 7] as number),
    };
    return kind === kinds.full ? { ...decision, reason: "full" } : decision;
  }

  #violated(bits: number): readonly string[] {
    if (this.#alone.length === 1) return this.#alone;
    return this.#names.filter((_, position) => (bits >>> position) & 1);
  }
}

/** Returns policies that allow a share of what these allow. */
export function shared(policies: readonly Policy[], share: number): Policy[] {
  instance();
  return JSON.parse(run(() => sharedPolicies(JSON.stringify(policies), Math.floor(share * 1e6))));
}
