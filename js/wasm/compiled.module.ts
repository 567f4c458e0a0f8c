/** Returns the module as it is: workerd and edge runtimes compile modules at deployment, and allow no other way. */
export const compiled = (module: WebAssembly.Module): WebAssembly.Module => module;
