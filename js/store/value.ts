import { inWords } from "../errors/error.ts";
import { hexOf, randomBits } from "../reservation/reservation-id.ts";
import type { State } from "../types.ts";
import { unreadable } from "./errors.ts";

/** The value of a key in a store: its state, and a tag that no other value has. */
export interface StoredValue {
  readonly state: State | null;
  /** Shows a limiter whether a swap was its own. Empty if there is no value. */
  readonly tag: string;
}

/** Returns a tag that no other value has. */
export const newTag = (): string => randomBits().slice(0, 2).map(hexOf).join("");

/** Returns the text of a state for a store: JSON, in ASCII, so that databases compare it byte by byte. */
export const valueText = ({ version, rows }: State, tag: string): string =>
  JSON.stringify({ version, tag, rows });

/** Parses the text of a key; throws `invalid_state` if no limiter wrote it. The numbers are checked when they are loaded. */
export function parsedValue(key: string, text: unknown): StoredValue {
  if (text === null || text === undefined) return { state: null, tag: "" };
  if (typeof text !== "string")
    throw unreadable(key, `is ${inWords(text)}, not the text that was stored, or null`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unreadable(key, `is not JSON: ${inWords(text)}`);
  }
  if (typeof value !== "object" || value === null) throw unreadable(key, `is not a state: ${inWords(text)}`);
  const { tag } = value as { readonly tag?: unknown };
  return { state: value as State, tag: typeof tag === "string" ? tag : "" };
}
