/** A character that takes two columns. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}]|[\u{20000}-\u{3fffd}]/u;

/** Returns how many columns a character takes. */
function columnsOf(character: string): number {
  if (/^[\p{M}\u200b-\u200d\ufeff]/u.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Returns how many columns a text takes. */
export function width(text: string): number {
  let columns = 0;
  for (const character of text) columns += columnsOf(character);
  return columns;
}

/** Returns a text in so many columns, with `…` for what is left out. */
export function fitted(text: string, columns: number, side: "left" | "right" = "left"): string {
  const length = width(text);
  if (length <= columns) {
    const space = " ".repeat(columns - length);
    return side === "left" ? text + space : space + text;
  }
  let [shown, used] = ["", 0];
  for (const character of text) {
    const more = columnsOf(character);
    if (used + more > columns - 1) break;
    shown += character;
    used += more;
  }
  return `${shown}${"…".slice(0, columns)}${" ".repeat(Math.max(0, columns - used - 1))}`;
}
