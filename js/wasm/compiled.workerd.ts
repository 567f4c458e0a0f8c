/** Returns the module as it is: workerd compiles modules when a Worker is deployed, and allows no other way. */
export const compiled = (module: WebAssembly.Module): WebAssembly.Module => module;
