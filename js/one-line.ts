/** What would change a terminal, or the order in which a line is read. */
const unprintable = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Returns a text for one line of a log. */
export const onOneLine = (text: string): string => text.replace(unprintable, "\ufffd");
