import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { nodeTestFlags, testFilesIn } from "../lib/node-test.mjs";
import { bin, inProject } from "../lib/paths.mjs";
import { quiet, show } from "../lib/run.mjs";
import { wranglerEnv } from "../lib/wrangler.mjs";

/** Packs the package as it would be published, and runs tests that install it into projects of their own. */
async function withTarball(tests) {
  mkdirSync(inProject("build"), { recursive: true });
  const folder = mkdtempSync(inProject("build/packed-"));
  try {
    await quiet("npm pack", "npm", ["pack", "--ignore-scripts", "--pack-destination", folder]);
    renameSync(join(folder, readdirSync(folder)[0]), join(folder, "tollgate.tgz"));
    await show(bin("node"), [...nodeTestFlags, "--test-concurrency=2", ...testFilesIn([tests])], {
      env: { ...wranglerEnv, TOLLGATE_PACKED: folder },
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export const inFreshProjects = () => withTarball("package");

export const ofDocuments = () => withTarball("documents");
