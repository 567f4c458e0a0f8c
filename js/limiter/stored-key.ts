import type { Key, StoredKey } from "../types.ts";

/** Returns a key for a snapshot. JSON has no bigint, and `1n` must not become `1` or `"1"`. */
export const storedKey = (key: Key): StoredKey => (typeof key === "bigint" ? { bigint: String(key) } : key);

/** Returns the key of a snapshot. An invalid key is returned as it is, and `checkKey` rejects it. */
export function keyFrom(stored: StoredKey): Key {
  const digits = (stored as { bigint?: unknown } | null)?.bigint;
  return typeof digits === "string" && /^-?\d+$/.test(digits) ? BigInt(digits) : (stored as Key);
}
