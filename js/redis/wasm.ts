import { __wbg_reset_state, type InitOutput, initSync } from "../../build/redis/tollgate.js";
import wasm from "../../build/redis/tollgate_bg.wasm";
import { type ErrorCode, TollgateError } from "../errors/error.ts";
import { allowed } from "../wasm/module.ts";

/** The current instance; `undefined` before the first and after a trap. */
let exports: InitOutput | undefined;
/** How many instances were created. */
let instances = 0;

/** Returns the current instance, and creates one if there is none. */
export function instance(): InitOutput {
  if (exports === undefined) {
    if (instances > 0) __wbg_reset_state();
    instances++;
    exports = initSync({ module: allowed(wasm) });
  }
  return exports;
}

/** Returns the number of the current instance. */
export const generation = (): number => instances;

/** Returns true if the instance of that number was lost in a trap. */
export const isLost = (number: number): boolean => exports === undefined || number !== instances;

/** Discards the current instance, after a trap. */
export function discard(): void {
  exports = undefined;
}

/** Runs `work` on the wasm. Its own errors are strings of code and message; any other is a trap and ends the instance. */
export function run<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (typeof error !== "string") {
      discard();
      throw error;
    }
    const [code, ...message] = error.split("\n");
    throw new TollgateError(code as ErrorCode, message.join("\n"));
  }
}
