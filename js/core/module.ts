/** The module from the text it is inlined as: nothing to fetch, nothing to configure. `scripts/package.mjs` writes it. */
export function compiled(inlined: string): WebAssembly.Module {
  const bytes = new Uint8Array(inlined.length);
  const common: number[] = [];
  const others: number[] = [];
  // First, four to a hexadecimal digit, which bytes are so common that they are one character.
  for (let byte = 0; byte < 256; byte++) {
    const isCommon = (Number.parseInt(inlined[byte >> 2] as string, 16) >> (byte & 3)) & 1;
    (isCommon === 1 ? common : others).push(byte);
  }
  // The 91 printable characters from # to ~, without the backslash; the last two begin a pair.
  const digit = (at: number) => {
    const code = inlined.charCodeAt(at);
    return code < 92 ? code - 35 : code - 36;
  };
  let length = 0;
  for (let at = 64; at < inlined.length; at++) {
    const first = digit(at);
    bytes[length++] = (first < 89 ? common[first] : others[(first - 89) * 91 + digit(++at)]) as number;
  }
  return new WebAssembly.Module(bytes.subarray(0, length));
}
