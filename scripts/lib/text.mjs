import { existsSync, readFileSync } from "node:fs";

/** Returns the trimmed text of a small file; null if there is none. */
export const readText = (file) => (existsSync(file) ? readFileSync(file, "utf8").trim() : null);
