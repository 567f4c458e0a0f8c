// Parts of values, as the script writes them.

/** Returns a time in seven characters of six bits. */
export function stamp(time) {
  let text = "";
  for (let rest = time, digit = 0; digit < 7; digit++, rest = Math.floor(rest / 64))
    text = String.fromCharCode(48 + (rest % 64)) + text;
  return text;
}

/** Returns an entry of another process, now. */
export const entry = (operations, number) =>
  `${stamp(Date.now())}${operations}!other${number.toString(36).padStart(4, "0")}`;
