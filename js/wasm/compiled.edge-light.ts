/**
 * Returns the module as it is: edge functions are compiled when they are deployed. Next's runtime does so in another realm,
 * and the glue of wasm-bindgen checks `instanceof`.
 */
export const compiled = (module: WebAssembly.Module): WebAssembly.Module =>
  module instanceof WebAssembly.Module ? module : Object.setPrototypeOf(module, WebAssembly.Module.prototype);
