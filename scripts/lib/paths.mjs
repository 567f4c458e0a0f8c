import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** A file or folder of the project. */
export const inProject = (...parts) => join(root, ...parts);

const cacheHome = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");

/** Tools live outside the clone, so that a second clone finds them ready. */
export const tools = process.env.TOLLGATE_TOOLS || join(cacheHome, "tollgate");

/** The Node of package.json. */
export const ownNode = inProject("node_modules/node/bin/node");

/** In a package of its own, for the sake of its TypeScript. */
export const typedocProgram = inProject("node_modules/tollgate-reference/node_modules/typedoc/bin/typedoc");

export const bin = (name) => inProject("node_modules", ".bin", name);

/** The caller's environment with folders put before PATH. */
export function withPath(folders, env = process.env) {
  return { ...env, PATH: [...folders, env.PATH].join(delimiter) };
}
