import * as rust from "../../build/worker/tollgate.js";
import module from "../../build/worker/tollgate_bg.wasm";

rust.initSync({ module });

/** The number of the wasm instance. Objects of earlier instances are invalid. */
let instance = 0;

/** Returns whether an error is a trap or an exhausted stack, which leave the instance's memory in an unknown state. */
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

/** A Rust object that is made again when its wasm instance is replaced. */
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
