import type { Key, StoredKey } from "./types.ts";

/** A key as a snapshot holds it. JSON has no bigint, and `1n` must not come back as `1` or `"1"`. */
export const storedKey = (key: Key): StoredKey => (typeof key === "bigint" ? { bigint: String(key) } : key);

/** The way back. What is no key comes back as it is, for `checkKey` to refuse. */
export function keyFrom(stored: StoredKey): Key {
  const digits = (stored as { bigint?: unknown } | null)?.bigint;
  return typeof digits === "string" && /^-?\d+$/.test(digits) ? BigInt(digits) : (stored as Key);
}
