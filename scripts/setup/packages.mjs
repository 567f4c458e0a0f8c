import { existsSync, readFileSync } from "node:fs";
import { inProject, ownNode, typedocProgram } from "../lib/paths.mjs";
import { quiet } from "../lib/run.mjs";

const packagesOf = (file) => JSON.parse(readFileSync(file, "utf8")).packages;

/** Returns whether the installed packages are those of the lock file. */
function installed() {
  const record = inProject("node_modules", ".package-lock.json");
  if (![record, ownNode, typedocProgram].every(existsSync)) return false;
  const have = packagesOf(record);
  const want = packagesOf(inProject("package-lock.json"));
  return Object.entries(want).every(([path, { version, optional, devOptional }]) => {
    if (path === "") return true;
    if (path in have) return have[path].version === version;
    return Boolean(optional || devOptional);
  });
}

export const packages = {
  id: "packages",
  name: "npm packages",
  what: "installing them into node_modules (about half a minute)",
  check: () => (installed() ? inProject("node_modules") : null),
  make: () =>
    quiet("npm ci", "npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
      remedy: "see npm's words above; a registry out of reach is the usual cause. Then run this again.",
    }),
};
