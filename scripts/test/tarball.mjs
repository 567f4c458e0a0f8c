import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { inProject } from "../lib/paths.mjs";
import { quiet, show } from "../lib/run.mjs";
import { wranglerEnv } from "../lib/wrangler.mjs";

const tests = readdirSync(inProject("tests/package"))
  .filter((name) => name.endsWith(".test.mjs"))
  .map((name) => inProject("tests/package", name));

/** Packs what would be published, and runs the tests that install it into projects of their own. */
export async function inFreshProjects() {
  mkdirSync(inProject("build"), { recursive: true });
  const folder = mkdtempSync(inProject("build/packed-"));
  try {
    await quiet("npm pack", "npm", ["pack", "--ignore-scripts", "--pack-destination", folder]);
    renameSync(join(folder, readdirSync(folder)[0]), join(folder, "tollgate.tgz"));
    await show(process.execPath, ["--test", "--test-concurrency=2", ...tests], {
      env: { ...wranglerEnv, TOLLGATE_PACKED: folder },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
