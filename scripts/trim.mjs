/** What is entered only to panic. The panic handler of this build traps, so nothing that comes before it matters. */
const panics =
  /\d(panicking|panic_\w+|handle_alloc_error|handle_error|capacity_overflow|[a-z_]+_fail(ed)?)(\d|E|$)/;

/** A wasm file without what only serves panics, and the exports that only a linker would use. */
export async function trimmed(wasm) {
  // Not at the top: on a fresh clone this file is read before there is a binaryen.
  const { default: binaryen } = await import("binaryen");
  binaryen.setDebugInfo(true);
  const module = binaryen.readBinary(wasm);
  const functions = Array.from({ length: module.getNumFunctions() }, (_, index) =>
    binaryen.getFunctionInfo(module.getFunctionByIndex(index)),
  );
  const trapping = functions.filter(({ name, module }) => module === "" && panics.test(name));
  if (trapping.length === 0) throw new Error("The wasm has no function that panics: are names left in it?");
  for (const { name, params, results } of trapping) {
    module.removeFunction(name);
    module.addFunction(name, params, results, [], module.unreachable());
  }
  const exports = Array.from(
    { length: module.getNumExports() },
    (_, index) => binaryen.getExportInfo(module.getExportByIndex(index)).name,
  );
  for (const name of exports.filter((name) => name.startsWith("__"))) module.removeExport(name);
  const binary = module.emitBinary();
  module.dispose();
  return binary;
}
