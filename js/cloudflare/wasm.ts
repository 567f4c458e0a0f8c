import * as rust from "../../build/worker/tollgate.js";
import module from "../../build/worker/tollgate_bg.wasm";
import { instanceOf, Remade, runOn, type WasmModule } from "../wasm/wasm-module.ts";

/** Rust throws errors, as the platform does; the engine throws a trap or an exhausted stack. */
const isOwn = (error: unknown) => !(error instanceof WebAssembly.RuntimeError || error instanceof RangeError);

const workerModule: WasmModule<unknown> = {
  start: () => rust.initSync({ module }),
  reset: rust.__wbg_reset_state,
  isOwn,
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
