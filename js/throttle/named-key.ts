import type { Key } from "../types.ts";

/** Returns the key of a call: `"default"` for one without, in memory as outside, where no key is empty. */
export const namedKey = (key: Key | undefined): Key => (key === undefined || key === "" ? "default" : key);
