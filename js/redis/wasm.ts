import { __wbg_reset_state, type InitOutput, initSync } from "../../build/redis/tollgate.js";
import wasm from "../../build/redis/tollgate_bg.wasm";
import { allowed } from "../core/module.ts";
import { type ErrorCode, TollgateError } from "../error.ts";

let exports: InitOutput | undefined;
/** How many instances of the wasm there were. */
let instances = 0;

/** Returns the instance in use. After a trap a new one takes over. */
export function instance(): InitOutput {
  if (exports === undefined) {
    if (instances > 0) __wbg_reset_state();
    instances++;
    exports = initSync({ module: allowed(wasm) });
  }
  return exports;
}

/** Returns the number of the instance in use. */
export const generation = (): number => instances;

/** Returns true if the instance of that number was ended by a trap. */
export const isGone = (number: number): boolean => exports === undefined || number !== instances;

/** Ends the instance in use. */
export function lose(): void {
  exports = undefined;
}

/** Runs `work` on the wasm. What it throws by itself are errors with a code; anything else ends the instance. */
export function run<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (typeof error !== "string") {
      lose();
      throw error;
    }
    const [code, ...message] = error.split("\n");
    throw new TollgateError(code as ErrorCode, message.join("\n"));
  }
}
