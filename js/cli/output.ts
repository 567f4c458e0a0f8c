// Everything that the command prints goes through here.

import { printable, printableJson } from "../printable.ts";

/** The sequences by which the command itself colours its output. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape begins a sequence
const ownColours = /(\x1b\[(?:[0-2]|3[1-3])m|\n)/;

/** Returns a text of several lines without what a terminal would act on, other than the command's own colours. */
const safe = (text: string): string =>
  text
    .split(ownColours)
    .map((part, at) => (at % 2 === 1 ? part : printable(part)))
    .join("");

/** Prints lines. */
export function print(text: string): void {
  process.stdout.write(safe(text));
}

/** Prints a value as JSON. */
export function printJson(value: unknown, space?: number): void {
  process.stdout.write(`${printableJson(value, space)}\n`);
}

/** Prints an error, which is one line. */
export function printError(text: string): void {
  process.stderr.write(`${printable(text.replaceAll("\n", " "))}\n`);
}
