import wasm from "../../build/throttle/tollgate_bg.wasm";
import { outOfMemory, TollgateError, wrongAmount } from "../errors/error.ts";
import { type ReadPolicies, tooSlow } from "../policy/policies.ts";
import type { Decision } from "../types.ts";
import { status } from "./generated.ts";
import { instantiated } from "./module.ts";
import { instanceOf, type WasmModule } from "./wasm-module.ts";

/** The exports of the small wasm, documented in `bindings/throttle/src/exports.rs`. */
export interface KeyExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  input(count: number): number;
  begin(count: number, counts: number, now: number): number;
  result(): number;
  hit(cost: number, now: number, charges: number): number;
  save(now: number): number;
  output(): number;
}

/** Makes exports without WebAssembly; undefined until they are loaded. */
let otherStart: (() => KeyExports) | undefined;

const keyModule: WasmModule<KeyExports> = {
  start: () => otherStart?.() ?? instantiated<KeyExports>(wasm),
  generation: 0,
};

/** Uses other exports instead of the wasm. */
export function startWith(start: () => KeyExports): void {
  otherStart = start;
}

/** What the wasm needs of policies: the numbers and names of all, and the `denied` of a single one. */
export type KeyPolicies = Pick<ReadPolicies, "numbers" | "names" | "denied">;

/** The states of one key. They are in the wasm while the key is the last one that was used, and here otherwise. */
export class KeyStates {
  readonly #policies: KeyPolicies;
  #saved: SavedStates;
  /** When it was last used. */
  #usedAt = 0;
  #isChanged = false;

  constructor(policies: KeyPolicies, saved: SavedStates = { numbers: [], expiresAt: 0 }) {
    this.#policies = policies;
    this.#saved = saved;
  }

  /** Returns whether the states have ended by a time; false if that is not known. */
  hasEnded(now: number): boolean {
    return current !== this && this.#saved.expiresAt <= now;
  }

  /** Returns the states as numbers. With `isAsked`, those in the wasm even if no hit has changed them. */
  saved(isAsked = false): SavedStates {
    if (this.#isChanged || isAsked) this.#save(currentExports());
    return this.#saved;
  }

  /** Decides a hit, and with `charges` charges it if it fits. */
  hit(cost: number, now: number, charges: boolean): Decision {
    if (this.load(now) < 0) throw outOfMemory();
    const { code, numbers } = run(({ hit, result, memory }) => ({
      code: hit(cost, now, Number(charges)),
      numbers: new Float64Array(memory.buffer, result() >>> 0, 9) as unknown as Results,
    }));
    if (code === status.invalidCost) throw wrongAmount("cost", cost);
    if (code < 0) throw outOfMemory();
    if (charges) this.#isChanged = true;
    this.#usedAt = now;
    const { names } = this.#policies;
    const [count, limit, remaining, retryAfter, resetAfter, moreAfter, isAllowed, policy, denied] = numbers;
    return {
      allowed: isAllowed === 1,
      count,
      limit,
      remaining,
      retryAfter,
      resetAfter,
      moreAfter,
      policy: names[policy] as string,
      violated: names.filter((_, position) => (denied >>> position) & 1),
    };
  }

  /**
   * Loads the states into the wasm, for the next operation. Returns a status: at or below `status.at`, the policy or row at
   * a position is invalid.
   */
  load(now: number): number {
    const { input, begin, memory } = currentExports();
    if (current === this) return 0;
    current?.saved();
    current = undefined;
    const { numbers, names, denied } = this.#policies;
    const all = [...numbers, ...this.#saved.numbers];
    const code = run(() => {
      const address = input(all.length);
      if (address === 0) return status.outOfMemory;
      new Float64Array(memory.buffer, address >>> 0, all.length).set(all);
      return begin(names.length, Number(denied === 1), now);
    });
    if (code >= 0) current = this;
    this.#usedAt = now;
    return code;
  }

  /** Copies the states from an instance, which may be one after a trap. */
  #save({ save, output, memory }: KeyExports): void {
    const count = save(this.#usedAt);
    if (count < 0) throw outOfMemory();
    const [expiresAt = 0, ...numbers] = new Float64Array(memory.buffer, output() >>> 0, count);
    this.#saved = { numbers, expiresAt };
    this.#isChanged = false;
  }

  /** Copies the states from an instance after a trap; those that cannot be read there are lost, which is thrown once. */
  rescue(exports: KeyExports): void {
    if (!this.#isChanged) return;
    try {
      this.#save(exports);
    } catch (error) {
      // The stack may have room for it next time.
      if (error instanceof RangeError) throw error;
      this.#isChanged = false;
      throw new TollgateError("state_lost", "the states of a key were lost in a trap; it starts afresh", {
        cause: error,
      });
    }
  }
}

/** States as numbers, in the format that Rust loads, and when they end; 0 if they have ended. */
export interface SavedStates {
  readonly numbers: readonly number[];
  readonly expiresAt: number;
}

/** The states that are in the wasm. */
let current: KeyStates | undefined;

/** The instance before this one, if a trap has left it with the states of the current key. */
let trapped: KeyExports | undefined;

/** Returns the exports of the current instance, after states were copied from the one before it. */
function currentExports(): KeyExports {
  if (trapped) {
    current?.rescue(trapped);
    trapped = current = undefined;
  }
  return instanceOf(keyModule);
}

/** Calls into the wasm. After a trap, the memory is in an unknown state: another instance replaces it. */
function run<Result>(work: (exports: KeyExports) => Result): Result {
  const exports = currentExports();
  try {
    return work(exports);
  } catch (error) {
    trapped = exports;
    keyModule.instance = undefined;
    throw error;
  }
}

/** The numbers that `result` of the wasm lists. */
type Results = readonly [number, number, number, number, number, number, number, number, number];

/** Checks what only Rust can check of policies: that no bucket takes too long to fill. */
export function checkPolicies(policies: ReadPolicies): void {
  const code = new KeyStates(policies).load(0);
  if (code <= status.at) throw tooSlow(policies, code);
  if (code < 0) throw outOfMemory();
}
