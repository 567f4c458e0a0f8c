import { __wbg_reset_state, type InitOutput, initSync } from "../../build/redis/tollgate.js";
import wasm from "../../build/redis/tollgate_bg.wasm";
import { type ErrorCode, TollgateError } from "../errors/error.ts";
import { allowed } from "../wasm/module.ts";
import { runOn, type WasmModule } from "../wasm/wasm-module.ts";

/** The wasm, whose own errors are strings of code and message. */
export const redisModule: WasmModule<InitOutput> = {
  start: () => initSync({ module: allowed(wasm) }),
  reset: __wbg_reset_state,
  isOwn: (error) => typeof error === "string",
  generation: 0,
};

/** Runs `work` on the wasm, and throws its errors as those of the package. */
export function run<Result>(work: () => Result): Result {
  try {
    return runOn(redisModule, work);
  } catch (error) {
    if (typeof error !== "string") throw error;
    const [code, ...message] = error.split("\n");
    throw new TollgateError(code as ErrorCode, message.join("\n"));
  }
}
