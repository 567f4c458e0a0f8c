/** Compiles the inlined wasm. Node decodes base64 natively, faster than a script decodes a shorter text. */
export const compiled = (inlined: string): WebAssembly.Module =>
  new WebAssembly.Module(Buffer.from(inlined, "base64"));
