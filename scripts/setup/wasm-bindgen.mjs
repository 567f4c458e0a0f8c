import { cargoTool } from "./cargo-tool.mjs";

/** The step of wasm-bindgen's CLI, which must have the version of the crate. */
export const wasmBindgen = cargoTool({
  id: "wasmBindgen",
  name: "wasm-bindgen",
  install: "wasm-bindgen-cli",
  what: "compiling it with cargo (1 to 2 minutes)",
});
