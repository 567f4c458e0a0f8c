/** A wasm module with one instance at a time. A record, so that a bundle has only the functions that it uses. */
export interface WasmModule<Instance> {
  /** Returns an instance. The glue of wasm-bindgen creates only the first. */
  readonly start: () => Instance;
  /** The glue's `__wbg_reset_state`, which replaces its instance. A wasm without glue needs none. */
  readonly reset?: () => void;
  /** Tells errors that Rust returns from traps and an exhausted stack. Without it, every error is one of those. */
  readonly isOwn?: (error: unknown) => boolean;
  /** The current instance; `undefined` before the first, and after a trap, which leaves no memory reliable. */
  instance?: Instance | undefined;
  /** How many instances were created. */
  generation: number;
}

/** Tells errors that Rust throws, as the platform does, from a trap or an exhausted stack, which the engine throws. */
export const isThrownByRust = (error: unknown): boolean =>
  !(error instanceof WebAssembly.RuntimeError || error instanceof RangeError);

/** Returns the current instance, and creates one if there is none. */
export function instanceOf<Instance>(own: WasmModule<Instance>): Instance {
  if (own.instance === undefined) {
    if (own.generation > 0) own.reset?.();
    own.instance = own.start();
    own.generation += 1;
  }
  return own.instance;
}

/** Runs `work` on the current instance, and discards the instance after a trap. */
export function runOn<Result>(own: WasmModule<unknown>, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!own.isOwn?.(error)) own.instance = undefined;
    throw error;
  }
}

/** Returns true if the instance of that number was lost in a trap. */
export const isLost = (own: WasmModule<unknown>, generation: number): boolean =>
  own.instance === undefined || own.generation !== generation;

/** A Rust object that is made again when its instance was lost. */
export class Remade<Made> {
  readonly #module: WasmModule<unknown>;
  readonly #make: () => Made;
  #made: Made;
  #generation: number;

  constructor(module: WasmModule<unknown>, make: () => Made) {
    this.#module = module;
    this.#make = make;
    instanceOf(module);
    this.#made = runOn(module, make);
    this.#generation = module.generation;
  }

  /** Returns true if its instance was lost. */
  get isLost(): boolean {
    return isLost(this.#module, this.#generation);
  }

  call<Result>(work: (made: Made) => Result): Result {
    if (this.isLost) {
      instanceOf(this.#module);
      this.#made = runOn(this.#module, this.#make);
      this.#generation = this.#module.generation;
    }
    const made = this.#made;
    return runOn(this.#module, () => work(made));
  }
}
