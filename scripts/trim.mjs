import { readFileSync, writeFileSync } from "node:fs";

/** What is entered only to panic. The panic handler of this build traps, so nothing that comes before it matters. */
const panics = /::panicking::|_fail(ed)?$|::panic_|::handle_alloc_error|::handle_error$|::capacity_overflow$/;

/** Rust's names end in a hash. */
const plain = (name) => name.replace(/::h[0-9a-f]{16}$/, "");

/** Takes out of a wasm file what only serves panics, and the exports that only wasm-bindgen's glue would use. */
export async function trim(file) {
  // Not at the top: on a fresh clone this file is read before there is a binaryen.
  const { default: binaryen } = await import("binaryen");
  binaryen.setDebugInfo(true);
  const module = binaryen.readBinary(readFileSync(file));
  const functions = Array.from({ length: module.getNumFunctions() }, (_, index) =>
    binaryen.getFunctionInfo(module.getFunctionByIndex(index)),
  );
  const trapping = functions.filter(({ name, module }) => module === "" && panics.test(plain(name)));
  if (trapping.length === 0) throw new Error(`${file} has no function that panics: are names left in it?`);
  for (const { name, params, results } of trapping) {
    module.removeFunction(name);
    module.addFunction(name, params, results, [], module.unreachable());
  }
  const exports = Array.from(
    { length: module.getNumExports() },
    (_, index) => binaryen.getExportInfo(module.getExportByIndex(index)).name,
  );
  for (const name of exports.filter((name) => name.startsWith("__"))) module.removeExport(name);
  writeFileSync(file, module.emitBinary());
  module.dispose();
}
