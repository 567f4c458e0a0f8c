import { outOfMemory, type TollgateError } from "../errors/error.ts";
import type { ReadOptions } from "../limiter/options.ts";
import { type ReadPolicies, reachableText, tooSlow } from "../policy/policies.ts";
import { status, storedLimitText } from "./generated.ts";
import { currentInstance, type Instance } from "./instance.ts";

/** The options that a limiter takes. */
export type SlotLimiterOptions = Pick<ReadOptions, "maxKeys" | "denies" | "cleanPeriod" | "keyOlderThan">;

/** A limiter in an instance, by its handle. */
type Owned = Pick<SlotLimiter, "instance" | "index" | "generation">;

/** Frees limiters that were collected as garbage. Hermes has no such registry; there they must be disposed of. */
const garbage =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : /* @__PURE__ */ new FinalizationRegistry<Owned>(({ instance, index, generation }) => {
        // That of a broken instance has none.
        if (!instance.broken) instance.exports.dispose(index, generation);
      });

/** The states of some keys in an instance of the wasm, by slot. */
export class SlotLimiter {
  readonly instance: Instance;
  readonly index: number;
  readonly generation: number;

  /** With `reports`, expired states are listed. With `stored`, states are for a store, where logs are shorter. */
  constructor(policies: ReadPolicies, options: SlotLimiterOptions, reports: boolean, stored = false) {
    const { numbers, denied, names } = policies;
    const { maxKeys, denies, cleanPeriod, keyOlderThan } = options;
    const instance = currentInstance();
    this.instance = instance;
    this.run(({ create }) => {
      instance.writeCall(numbers);
      const flags = [denies, cleanPeriod, keyOlderThan, reports, stored] as const;
      create(
        names.length,
        denied,
        maxKeys,
        ...(flags.map(Number) as [number, number, number, number, number]),
      );
    });
    [this.index, this.generation] = instance.handle();
    if (this.index < 0) throw rejected(policies, this.index, stored);
    garbage?.register(this, { instance, index: this.index, generation: this.generation }, this);
  }

  /** Calls into the wasm. */
  run<Result>(work: (exports: Instance["exports"], index: number, generation: number) => Result): Result {
    try {
      return work(this.instance.exports, this.index, this.generation);
    } catch (error) {
      // A trap or an exhausted stack: the memory is in an unknown state.
      this.instance.broken = true;
      throw error;
    }
  }

  /** Reads one key's states into a slot, unless they have ended; without `put` it only checks them. Returns a status. */
  load(slot: number, now: number, numbers: readonly number[], put: boolean): number {
    return this.run(({ load }, index, generation) => {
      if (!this.instance.writeInput(numbers)) return status.outOfMemory;
      return load(index, generation, slot, now, Number(put));
    });
  }

  /**
   * Sets the exception of a key, by its parts as numbers; without any, lifts it. Returns when it ends or would have ended,
   * or a status.
   */
  except(slot: number, parts: readonly number[], now: number): number {
    return this.run(({ except }, index, generation) => {
      if (!this.instance.writeInput(parts)) return status.outOfMemory;
      return except(index, generation, slot, now);
    });
  }

  /** Returns the slots that were taken and freed since the last `acknowledge`; empty if the limiter is gone. */
  moves(): number[] {
    return this.run((_, index, generation) => this.instance.moves(index, generation));
  }

  /** Returns the slots that were taken and freed, and acknowledges them. Empty if the last operation moved none. */
  takeMoves(): number[] {
    if (!this.instance.hasMoved()) return [];
    const list = this.moves();
    this.run(({ acknowledge }, index, generation) => acknowledge(index, generation));
    return list;
  }

  /** Frees the memory. The limiter of a broken instance has none. */
  free(): void {
    garbage?.unregister(this);
    if (!this.instance.broken) this.run(({ dispose }, index, generation) => dispose(index, generation));
  }
}

/** Returns the error for the status of policies that Rust rejected. */
export function rejected(policies: ReadPolicies, code: number, stored: boolean): TollgateError {
  if (code > status.at) return outOfMemory();
  // A bucket is rejected for its capacity, a log for its length, a concurrency for what a key can reach.
  const algorithm = policies.origins[status.at - code]?.algorithm;
  if (algorithm === "sliding_window") return policies.unfit(code, storedLimitText);
  return algorithm === "concurrency" ? policies.unfit(code, reachableText(stored)) : tooSlow(policies, code);
}
