/** Node decodes base64 by itself, sooner than any script could decode a shorter text. */
export const compiled = (inlined: string): WebAssembly.Module =>
  new WebAssembly.Module(Buffer.from(inlined, "base64"));
