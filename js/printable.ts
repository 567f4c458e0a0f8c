// Texts of others on a terminal or in a log.

// Controls of C0 and C1, separators of lines, and marks of direction.
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is replaced
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

// The same without those of C0, which JSON itself escapes.
const beyondJson = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Returns a text without what a terminal would act on, or what would show the text around it in another order. */
export const printable = (text: string): string => text.replace(unsafe, "\ufffd");

/** Returns a value as JSON in which the same characters are escapes. */
export const printableJson = (value: unknown, space?: number): string =>
  JSON.stringify(value, undefined, space).replace(
    beyondJson,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
