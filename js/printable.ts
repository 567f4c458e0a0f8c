// Texts of others on a terminal or in a log.

/** Controls of C0 and C1, separators of lines, and marks of direction. Hermes has no classes of characters by property. */
const unsafe = /[^ -~\u00a0-\uffff]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Returns a text without what a terminal would act on, or what would show the text around it in another order. */
export const printable = (text: string): string => text.replace(unsafe, "\ufffd");

/** Returns a value as JSON in which the same characters are escapes, other than the line breaks of an indented one. */
export const printableJson = (value: unknown, space?: number): string =>
  JSON.stringify(value, undefined, space).replace(unsafe, (character) =>
    character === "\n" ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
