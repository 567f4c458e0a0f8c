import { readFileSync, writeFileSync } from "node:fs";
import { bin } from "./paths.mjs";
import { quiet } from "./run.mjs";

/** Replaces what wasm2js cannot translate: bulk memory, sign extension and saturating conversions. */
const lowering = [
  "--llvm-memory-copy-fill-lowering",
  "--signext-lowering",
  "--llvm-nontrapping-fptoint-lowering",
  "-Oz",
  "--low-memory-unused",
];

/** Translates a wasm without imports to a JavaScript module, which exports a function that makes an instance. */
export async function writeWithoutWasm(wasm, file, wasmOptFlags) {
  const lowered = `${file}.wasm`;
  await quiet("wasm-opt", bin("wasm-opt"), [wasm, "-o", lowered, ...lowering, ...wasmOptFlags]);
  await quiet("wasm2js", bin("wasm2js"), [lowered, "-o", file, "-O3", "--enable-mutable-globals"]);
  const text = readFileSync(file, "utf8");
  // By itself the module makes one instance, and exports the functions of that.
  const [body, exported] = text.split("\nvar retasmFunc = asmFunc({\n});\n");
  if (exported === undefined) throw new Error(`${file} does not end as wasm2js writes it`);
  writeFileSync(file, `${body}\nexport const instantiate = () => asmFunc({});\n`);
}
