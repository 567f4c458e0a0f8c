import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Whether a module is the program being run, not one that was imported. */
export const isMain = ({ url }) => fileURLToPath(url) === realpathSync(process.argv[1]);
