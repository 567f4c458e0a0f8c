import { cargoTool } from "./cargo-tool.mjs";

/** The CLI reads what the crate wrote into the wasm: the two must be of one version. */
export const wasmBindgen = cargoTool({
  id: "wasmBindgen",
  name: "wasm-bindgen",
  install: "wasm-bindgen-cli",
  what: "compiling it with cargo (1 to 2 minutes)",
});
