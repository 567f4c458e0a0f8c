import module from "../../build/js/tollgate_bg.wasm";

/** workerd compiles modules when a Worker is deployed, and allows no other way. */
export const compiled = (): WebAssembly.Module => module;
