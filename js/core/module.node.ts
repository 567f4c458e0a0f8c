import inlined from "../../build/js/tollgate_bg.wasm";

/** Node decodes base64 by itself, sooner than any script could decode a shorter text. */
export const compiled = (): WebAssembly.Module => new WebAssembly.Module(Buffer.from(inlined, "base64"));
