import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { nodeTestFlags } from "./scripts/lib/node-test.mjs";
import { bin, inProject } from "./scripts/lib/paths.mjs";
import { quiet, show } from "./scripts/lib/run.mjs";
import { wranglerEnv } from "./scripts/lib/wrangler.mjs";
const folder = mkdtempSync(inProject("build/packed-"));
try {
  await quiet("npm pack", "npm", ["pack", "--ignore-scripts", "--pack-destination", folder]);
  renameSync(join(folder, readdirSync(folder)[0]), join(folder, "tollgate.tgz"));
  await show(bin("node"), [...nodeTestFlags, ...process.argv.slice(2)], { env: { ...wranglerEnv, TOLLGATE_PACKED: folder } });
} finally { rmSync(folder, { recursive: true, force: true }); }
