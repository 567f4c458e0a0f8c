import { inWords } from "../error.ts";
import type { State } from "../types.ts";

/** Stand between fields and between policies; `src/js/convert.rs` knows the same. */
export const between = "\x1f";
const betweenPolicies = "\x1e";

/** A text without the characters that stand between fields: they are in no text that Rust would accept. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is control characters that are taken out
export const clean = (text: string) => text.replace(/[\0-\x1f]/g, "\ufffd");

/** A value as Rust reads it: its kind, then the value or what it is in words. */
function written(value: unknown): string {
  if (typeof value === "string") return `t${clean(value)}`;
  if (typeof value !== "number") return `o${clean(inWords(value))}`;
  return Number.isSafeInteger(value) && value >= 0 ? `n${value}` : `o${value}`;
}

/** An object's fields, names and values in turn. What is undefined or null was left out. */
export function fields(object: object): string {
  let text = "";
  for (const [name, value] of Object.entries(object)) {
    if (value != null) text += clean(name) + between + written(value) + between;
  }
  return text;
}

/** Policies, each with its end. */
export const policiesText = (policies: readonly object[]): string =>
  policies.map((policy) => fields(policy) + betweenPolicies).join("");

/** The parts of a text that has an end after each. */
export const parts = (text: string): string[] => text.split(between).slice(0, -1);

/** What states were made by: for each policy its name, its algorithm and its scale, in turn. */
export const originsText = (origins: State["policies"]): string =>
  origins
    .map(({ name, algorithm, scale }) => [clean(name), clean(algorithm), scale, ""].join(between))
    .join("");
