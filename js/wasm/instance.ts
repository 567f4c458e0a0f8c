import wasm from "../../build/npm/tollgate_bg.wasm";
import { isDetached } from "./detached.ts";
import { resultOffsets, schema } from "./generated.ts";
import { instantiated } from "./module.ts";
import { instanceOf, type WasmModule } from "./wasm-module.ts";

/**
 * The exports of the wasm that take and return numbers, documented in `bindings/npm/src/hot.rs` and `limiter.rs`.
 */
export interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly __stack_pointer: WebAssembly.Global<"i32">;
  create(
    count: number,
    denied: number,
    maxKeys: number,
    denies: number,
    cleanPeriod: number,
    keyOlderThan: number,
    reports: number,
    stored: number,
  ): void;
  dispose(index: number, generation: number): void;
  result_buffer(): number;
  call_buffer(): number;
  reservation_buffer(): number;
  hit(index: number, generation: number, slot: number, cost: number, now: number): number;
  hit_with(
    index: number,
    generation: number,
    slot: number,
    cost: number,
    now: number,
    policies: number,
    kind: number,
  ): number;
  close_reservation(index: number, generation: number, slot: number, now: number, extends_: number): number;
  undo(index: number, generation: number, slot: number, now: number, asks: number): number;
  rescue(index: number, generation: number, slot: number, position: number, from: number): number;
  count(
    index: number,
    generation: number,
    operation: number,
    slot: number,
    amount: number,
    now: number,
    position: number,
  ): number;
  release(index: number, generation: number, slot: number): number;
  reset(index: number, generation: number, slot: number, all: number, now: number): number;
  clean(index: number, generation: number, now: number, from: number): number;
  moves(index: number, generation: number, from: number): number;
  acknowledge(index: number, generation: number): number;
  evicted(index: number, generation: number): number;
  save(index: number, generation: number, slot: number, now: number): number;
  input(count: number): number;
  load(index: number, generation: number, slot: number, now: number, put: number): number;
  except(index: number, generation: number, slot: number, now: number): number;
}

/** The index of the integer that says whether slots were moved. */
const movedAt = (resultOffsets.moved - resultOffsets.integers) / 4;

/** An instance of the wasm, with views of its memory. After a trap, another instance replaces it. */
export class Instance {
  readonly exports: Exports;
  /**
   * Set first of all by callers that catch an error of the wasm, since an exhausted stack has no room for a call.
   * From then on only `moves`, `rescued` and `evicted` may be called, after `revive`.
   */
  broken = false;
  /**
   * The numbers of the last decision, and whether slots were moved. Detached when the memory grows, until `refreshViews` is
   * called.
   */
  integers = new Int32Array();
  floats = new Float64Array();
  readonly #stack: number;
  readonly #result: number;
  readonly #call: number;
  /** The whole memory, as floats and as words. Detached when it grows, too. */
  #memory = new Float64Array();
  #words = new Int32Array();
  /** Costs by position, then id, ttl and end of a reservation. Detached when the memory grows, too. */
  #reservation = new Float64Array();

  constructor(exports: Exports) {
    this.exports = exports;
    this.#stack = exports.__stack_pointer.value;
    this.#result = exports.result_buffer();
    this.#call = exports.call_buffer();
    this.refreshViews();
  }

  /** Creates the views of the result buffer again, after the memory has grown. */
  refreshViews(): void {
    const { buffer } = this.exports.memory;
    this.floats = new Float64Array(buffer, this.#result + resultOffsets.floats, 6);
    this.integers = new Int32Array(buffer, this.#result + resultOffsets.integers, movedAt + 1);
  }

  /** Returns true if the last operation moved slots, whether it failed or not. A plain hit moves none, and does not say so. */
  hasMoved(): boolean {
    if (isDetached(this.integers, this.exports.memory)) this.refreshViews();
    return this.integers[movedAt] !== 0;
  }

  /** Writes the numbers of a call's policies. */
  writeCall(numbers: readonly number[]): void {
    new Float64Array(this.exports.memory.buffer, this.#call, numbers.length).set(numbers);
  }

  /** Writes costs by position. */
  writeCosts(costs: readonly number[]): void {
    this.#reservationNumbers().set(costs);
  }

  /** Writes the id, ttl and end of a reservation. */
  writeReservation(bits: readonly number[], ttl: number, end: number): void {
    const numbers = this.#reservationNumbers();
    numbers.set(bits, schema.maxPolicies);
    numbers[schema.maxPolicies + 4] = ttl;
    numbers[schema.maxPolicies + 5] = end;
  }

  #reservationNumbers(): Float64Array {
    const { memory, reservation_buffer } = this.exports;
    if (isDetached(this.#reservation, memory)) {
      this.#reservation = new Float64Array(memory.buffer, reservation_buffer(), schema.maxPolicies + 6);
    }
    return this.#reservation;
  }

  /** Writes numbers for the next operation. Returns false if there is no memory for them. */
  writeInput(numbers: readonly number[]): boolean {
    const address = this.exports.input(numbers.length);
    if (address === 0) return false;
    if (isDetached(this.#memory, this.exports.memory))
      this.#memory = new Float64Array(this.exports.memory.buffer);
    // A view for each key would take most of the time of a restore.
    for (let [at, index] = [address >>> 3, 0]; index < numbers.length; at += 1, index += 1)
      this.#memory[at] = numbers[index] as number;
    return true;
  }

  /** Returns the handle of the limiter that was just made: its index, or a status below 0, and its generation. */
  handle(): [index: number, generation: number] {
    const { buffer } = this.exports.memory;
    const [index = 0, generation = 0] = new Int32Array(buffer, this.#result + resultOffsets.handle, 2);
    return [index, generation];
  }

  /** Copies the list that the last operation returned. */
  list(): number[] {
    if (isDetached(this.#words, this.exports.memory))
      this.#words = new Int32Array(this.exports.memory.buffer);
    const words = this.#words;
    const at = (this.#result + resultOffsets.list) >>> 2;
    const [first, length] = [(words[at] as number) >>> 2, (words[at + 1] as number) >>> 0];
    const numbers: number[] = [];
    for (let at = first; at < first + 2 * length; at += 2)
      numbers.push((words[at + 1] as number) * 2 ** 32 + ((words[at] as number) >>> 0));
    return numbers;
  }

  /** Copies a list that the wasm returns in parts, each from the number at `from` on, until a part is empty. */
  parts(part: (from: number) => number): number[] {
    const numbers: number[] = [];
    for (;;) {
      const count = part(numbers.length);
      if (count <= 0) return numbers;
      for (const number of this.list()) numbers.push(number);
    }
  }

  /** Copies the moves of a limiter that are not acknowledged. */
  moves(index: number, generation: number): number[] {
    return this.parts((from) => this.exports.moves(index, generation, from));
  }

  /** Copies the states of a slot out of a broken instance, in the format that Rust loads. */
  rescued(index: number, generation: number, slot: number): number[] {
    const numbers: number[] = [];
    for (let at = 0; ; at++) {
      const list = this.parts((from) => this.exports.rescue(index, generation, slot, at, from));
      if (list.length === 0) return numbers;
      numbers.push(list.length);
      for (const number of list) numbers.push(number);
    }
  }

  /** Prepares a broken instance for `moves`, `rescued` and `evicted`: resets its stack. */
  revive(): void {
    this.exports.__stack_pointer.value = this.#stack;
  }

  /** Returns how many live keys were evicted from a limiter, also of a broken instance. */
  evicted(index: number, generation: number): number {
    if (this.broken) this.revive();
    return this.exports.evicted(index, generation);
  }
}

const npmModule: WasmModule<Instance> = {
  start: () => new Instance(instantiated<Exports>(wasm)),
  generation: 0,
};

/** Returns the current instance. The wasm is compiled when it is first needed, not when the package is imported. */
export function currentInstance(): Instance {
  if (npmModule.instance?.broken) npmModule.instance = undefined;
  return instanceOf(npmModule);
}
