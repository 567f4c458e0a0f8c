import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Returns whether a module is the program that was started, and not imported. */
export const isMain = ({ url }) => fileURLToPath(url) === realpathSync(process.argv[1]);
