import inlined from "../../build/js/inline.js";

/** The module from the text it is inlined as: nothing to fetch, nothing to configure. */
export function compiled(): WebAssembly.Module {
  const bytes = new Uint8Array(inlined.length);
  let length = 0;
  // The 91 printable characters from # to ~ but for the backslash; the last two begin a pair.
  const digit = (at: number) => {
    const code = inlined.charCodeAt(at);
    return code < 92 ? code - 35 : code - 36;
  };
  for (let at = 0; at < inlined.length; at++) {
    const first = digit(at);
    bytes[length++] = first < 89 ? first : 89 + (first - 89) * 91 + digit(++at);
  }
  return new WebAssembly.Module(bytes.subarray(0, length));
}
