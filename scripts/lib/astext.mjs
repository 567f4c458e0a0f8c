/** Returns one of the 91 printable characters from # to ~, without the backslash. The last two begin a pair. */
const digit = (value) => String.fromCharCode(value < 57 ? value + 35 : value + 36);
const single = 89;

/** The first 89 characters, by how often they occur in minified JavaScript. */
const byUse = "etin()r,os=l.ahBfcu;R${md#p:ywg[]0bv?&>`1_Ak|CIGSxNj<46F+-DE2O3M'PQTH5W/zKXq8LUJ9VY*^7Z%@";

/**
 * Returns a wasm as text: first, in base64, the bytes that have one character each, then the contents. The most common
 * bytes are one character, the others two. The most common byte is the most common character of scripts, so that one
 * Huffman code of gzip suits both. gzip finds the same repetitions as in the wasm, which base64 would hide.
 * `js/wasm/compiled.ts` decodes it.
 */
export function asText(wasm) {
  const counts = new Array(256).fill(0);
  for (const byte of wasm) counts[byte] += 1;
  const all = [...counts.keys()];
  const common = all.toSorted((one, other) => counts[other] - counts[one]).slice(0, single);
  const others = all.filter((byte) => !common.includes(byte));
  const written = all.map((byte) => {
    if (common.includes(byte)) return byUse[common.indexOf(byte)];
    const place = others.indexOf(byte);
    return digit(single + Math.floor(place / 91)) + digit(place % 91);
  });
  const key = Array.from({ length: single }, (_, value) => common[byUse.indexOf(digit(value))]);
  return Buffer.from(key).toString("base64") + Array.from(wasm, (byte) => written[byte]).join("");
}
