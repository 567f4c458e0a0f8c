import * as rust from "../../build/worker/tollgate.js";
import module from "../../build/worker/tollgate_bg.wasm";

rust.initSync({ module });

/** Counts the instances: what was made by an earlier one is gone. */
let instance = 0;

/** A trap or an exhausted stack leaves the instance's memory in an unknown state. */
const isFatal = (error: unknown) => error instanceof WebAssembly.RuntimeError || error instanceof RangeError;

/** Calls into Rust. After a panic the next call gets a fresh instance. */
export function call<Result>(work: (module: typeof rust) => Result): Result {
  try {
    return work(rust);
  } catch (error) {
    throw afterwards(error);
  }
}

function afterwards(error: unknown): unknown {
  if (isFatal(error)) {
    rust.__wbg_reset_state();
    instance += 1;
  }
  return error;
}

/** A Rust object that is made again, from storage, when its instance is gone. */
export class Rebuilt<Made> {
  #make: (module: typeof rust) => Made;
  #made: Made;
  #instance: number;

  constructor(make: (module: typeof rust) => Made) {
    this.#make = make;
    this.#made = call(make);
    this.#instance = instance;
  }

  call<Result>(work: (made: Made) => Result): Result {
    if (this.#instance !== instance) {
      this.#made = call(this.#make);
      this.#instance = instance;
    }
    try {
      return work(this.#made);
    } catch (error) {
      throw afterwards(error);
    }
  }
}
