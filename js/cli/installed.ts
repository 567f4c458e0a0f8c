import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Where this package was installed from: the registry, a tarball or a folder by its path, or unknown. */
export type Origin = { readonly path: string } | "registry" | "unknown";

/** Returns where this package was installed from, by the file that npm writes into `node_modules`. */
export function originOfPackage(): Origin {
  const own = dirname(dirname(fileURLToPath(import.meta.url)));
  const modules = dirname(own);
  // npm links to a folder that is installed, and Node resolves the link.
  if (basename(modules) !== "node_modules") return { path: own };
  const resolved = resolvedBy(join(modules, ".package-lock.json"), `node_modules/${basename(own)}`);
  if (resolved === undefined) return "unknown";
  if (!resolved.startsWith("file:")) return "registry";
  const path = resolve(dirname(modules), resolved.slice("file:".length));
  return existsSync(path) ? { path } : "unknown";
}

function resolvedBy(lockFile: string, name: string): string | undefined {
  try {
    return JSON.parse(readFileSync(lockFile, "utf8")).packages[name].resolved;
  } catch {
    return undefined;
  }
}
