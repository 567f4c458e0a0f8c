const dataSection = 11;

/** A text of a panic: its pieces, with a byte between them where something is put in, and the length before each piece. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: lengths are bytes
const panicText = /[ -~]{12,}(?:\xc0(?:[\x01-\x7f][ -~]+)?)*/g;

/** A wasm file without the texts of panics and the places in the source that they name. For one that has no others. */
export function speechless(wasm) {
  const bytes = Uint8Array.from(wasm);
  const segments = dataSegments(bytes);
  for (const { address, data } of segments) {
    for (const { index, 0: text } of Buffer.from(data).toString("latin1").matchAll(panicText)) {
      const hasLength = data[index - 1] === text.split("\xc0", 1)[0].length;
      data.fill(0, hasLength ? index - 1 : index, index + text.length);
      for (const { data } of segments) wipePlaces(data, address + index, text.length);
    }
  }
  return bytes;
}

/** What a wasm file puts into its memory, and where. */
function dataSegments(bytes) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  const segments = [];
  while (at < bytes.length) {
    const section = bytes[at++];
    const length = number();
    const end = at + length;
    for (let left = section === dataSection ? number() : 0; left > 0; left -= 1) {
      // Where the data go: which memory, and a constant with its end.
      at += 2;
      const address = number();
      at += 1;
      const size = number();
      segments.push({ address, data: bytes.subarray(at, at + size) });
      at += size;
    }
    at = end;
  }
  return segments;
}

/** A place in the source: where the text of its path lies, how long that is, the line and the column. */
function wipePlaces(data, address, length) {
  const words = new DataView(data.buffer, data.byteOffset, data.byteLength);
  for (let at = 0; at + 16 <= data.length; at += 1) {
    if (words.getUint32(at, true) === address && words.getUint32(at + 4, true) === length)
      data.fill(0, at, at + 16);
  }
}
