/** Compiles the wasm that is inlined as text, so that none is fetched. `scripts/lib/astext.mjs` writes the text. */
export function compiled(inlined: string): WebAssembly.Module {
  // The text starts with the bytes, in base64, that take one character each.
  const common = atob(inlined.slice(0, 120));
  const others: number[] = [];
  for (let byte = 0; byte < 256; byte++) if (!common.includes(String.fromCharCode(byte))) others.push(byte);
  // The 91 printable characters from # to ~, without the backslash; the last two begin a pair.
  const digit = (at: number) => {
    const code = inlined.charCodeAt(at);
    return code < 92 ? code - 35 : code - 36;
  };
  const bytes = new Uint8Array(inlined.length);
  let length = 0;
  for (let at = 120; at < inlined.length; at++) {
    const first = digit(at);
    bytes[length++] =
      first < 89 ? common.charCodeAt(first) : (others[(first - 89) * 91 + digit(++at)] as number);
  }
  // Not by `new`: the types of Workers, where this file is replaced, have no such constructor.
  return Reflect.construct(WebAssembly.Module, [bytes.subarray(0, length)]);
}
