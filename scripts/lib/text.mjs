import { existsSync, readFileSync } from "node:fs";

/** What a small file says, or null where there is none. */
export const readText = (file) => (existsSync(file) ? readFileSync(file, "utf8").trim() : null);
