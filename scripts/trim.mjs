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

/** How many letters in a row make a text. */
const textLength = 12;
const dataSection = 11;

/** A wasm file whose data hold no texts. For one that answers in numbers only: its texts are those of panics. */
export function speechless(wasm) {
  const bytes = Uint8Array.from(wasm);
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const section = bytes[at++];
    const length = number();
    const end = at + length;
    for (let left = section === dataSection ? number() : 0; left > 0; left -= 1) {
      // Where the data go: which memory, and a constant with its end.
      at += 2;
      number();
      at += 1;
      const size = number();
      wipeTexts(bytes.subarray(at, at + size));
      at += size;
    }
    at = end;
  }
  return bytes;
}

function wipeTexts(data) {
  let start = 0;
  for (let at = 0; at <= data.length; at++) {
    if (data[at] >= 0x20 && data[at] < 0x7f) continue;
    if (at - start >= textLength) data.fill(0, start, at);
    start = at + 1;
  }
}
