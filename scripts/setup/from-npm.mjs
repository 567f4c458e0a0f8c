import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { finished } from "../lib/finished.mjs";
import { tools } from "../lib/paths.mjs";
import { quiet } from "../lib/run.mjs";
import { dim, say } from "../lib/say.mjs";

/**
 * Returns a step that installs npm packages into a folder of the tools. They are for tests only, and large or not for every
 * machine: where they cannot be had, the result is `{ why }`, and the tests that need them are skipped.
 *
 * `packages` are versions by name. `result` returns the result from the folder's `node_modules`; `works` checks it.
 */
export function fromNpm({ id, name, what, packages, installed = () => null, result, works = () => true }) {
  const versions = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  const home = join(tools, [id, ...Object.values(packages)].join("-"));
  const modules = join(home, "node_modules");
  let missing = null;

  async function make() {
    try {
      await finished(home, (folder) =>
        quiet("npm", "npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", ...versions]),
      );
      if (!works(result(modules))) throw new Error("it does not run here");
    } catch {
      rmSync(home, { recursive: true, force: true });
      missing = { why: `${name} cannot be had from npm for this machine` };
      say(dim(`      ${missing.why}; the tests that need it are skipped`));
    }
  }

  const check = () => installed() ?? (existsSync(modules) ? result(modules) : missing);
  return { id, name, what: `installing it from npm into the tools folder (${what})`, check, make };
}
