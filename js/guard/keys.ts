import { inWords, TollgateError } from "../errors/error.ts";
import type { Key } from "../types.ts";
import { schema } from "../wasm/generated.ts";
import { isWellFormed } from "../well-formed.ts";
import type { Awaitable, LongKeys } from "./types.ts";

/**
 * Returns the key that is limited: the same for every limiter, wherever its keys are. A text that no store takes is hashed, if
 * `longKeys` says so.
 *
 * @throws `TollgateError` with the code `invalid_key` for anything else. Its origin is a request.
 */
export function checkedKey(key: unknown, longKeys: LongKeys): Awaitable<Key> {
  if (typeof key === "bigint" || Number.isFinite(key)) return key as Key;
  if (typeof key === "string" && isStorable(key)) return key;
  if (typeof key === "string" && key !== "" && longKeys === "hash") return hashed(key);
  throw new TollgateError("invalid_key", `key: ${inWords(key)} is not a key; ${expected}`);
}

const expected = `return a string of 1 to ${schema.maxKeyBytes} bytes of UTF-8, a finite number or a bigint, set longKeys: "hash", or skip such requests`;

/** Returns whether every store takes a key. Most are so short that their bytes need no count. */
const isStorable = (key: string): boolean =>
  key !== "" &&
  (3 * key.length <= schema.maxKeyBytes || new TextEncoder().encode(key).length <= schema.maxKeyBytes) &&
  isWellFormed(key);

/** Returns the hash of a text, by its UTF-16 units: in UTF-8, all lone surrogates are the same. */
async function hashed(key: string): Promise<string> {
  const units = Uint16Array.from({ length: key.length }, (_, at) => key.charCodeAt(at));
  const digest = await crypto.subtle.digest("SHA-256", units);
  return `sha256:${Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
