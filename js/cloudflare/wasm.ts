import * as rust from "../../build/worker/tollgate.js";
import module from "../../build/worker/tollgate_bg.wasm";
import { instanceOf, isThrownByRust, Remade, runOn, type WasmModule } from "../wasm/wasm-module.ts";

const workerModule: WasmModule<unknown> = {
  start: () => rust.initSync({ module }),
  reset: rust.__wbg_reset_state,
  isOwn: isThrownByRust,
  generation: 0,
};
// While the Worker starts, which is not part of a request.
instanceOf(workerModule);

/** Calls into Rust. After a panic the next call gets a fresh instance. */
export function call<Result>(work: (module: typeof rust) => Result): Result {
  instanceOf(workerModule);
  return runOn(workerModule, () => work(rust));
}

/** A Rust object that is made again when its wasm instance is replaced. */
export class Rebuilt<Made> extends Remade<Made> {
  constructor(make: (module: typeof rust) => Made) {
    super(workerModule, () => make(rust));
  }
}
