import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** Returns the path of a file or folder of the project. */
export const inProject = (...parts) => join(root, ...parts);

const cacheHome = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");

/** The folder of tools. It is outside the clone, so that other clones use the same tools. */
export const tools = process.env.TOLLGATE_TOOLS || join(cacheHome, "tollgate");

/** The Node of package.json. */
export const ownNode = inProject("node_modules/node/bin/node");

/** typedoc, in a package of its own because it needs another TypeScript. */
export const typedocProgram = inProject("node_modules/tollgate-reference/node_modules/typedoc/bin/typedoc");

export const bin = (name) => inProject("node_modules", ".bin", name);

/** Returns an environment with folders before those of PATH. */
export function withPath(folders, env = process.env) {
  return { ...env, PATH: [...folders, env.PATH].join(delimiter) };
}
