/** Makes an instance of a wasm that is JavaScript. */
class Instance {
  readonly exports: unknown;

  constructor(instantiate: () => unknown) {
    this.exports = instantiate();
  }
}

/** The errors of a wasm that is JavaScript: a trap is a plain error. An exhausted stack is not a trap. */
const RuntimeError = {
  [Symbol.hasInstance]: (error: unknown): boolean => error instanceof Error && !(error instanceof RangeError),
};

/** Stands for the platform's `WebAssembly` in `tollgate/js`, where a module is a function that makes instances. */
export const WebAssembly = { Instance, RuntimeError };
