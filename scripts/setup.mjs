import { isMain } from "./lib/main.mjs";
import { report } from "./lib/say.mjs";
import { isMissing, setUp } from "./lib/steps.mjs";
import { browser } from "./setup/browser.mjs";
import { frameworks } from "./setup/frameworks.mjs";
import { hermes } from "./setup/hermes.mjs";
import { miri } from "./setup/miri.mjs";
import { next } from "./setup/next.mjs";
import { continuedUnderOwnNode } from "./setup/node.mjs";
import { node20, node22 } from "./setup/older-nodes.mjs";
import { openMetrics } from "./setup/openmetrics.mjs";
import { packages } from "./setup/packages.mjs";
import { redis } from "./setup/redis.mjs";
import { tmux } from "./setup/tmux.mjs";
import { wasmBindgen } from "./setup/wasm-bindgen.mjs";
import { wasmTarget } from "./setup/wasm-target.mjs";

export const toBuild = [packages, wasmTarget, wasmBindgen];
export const toTest = [
  ...toBuild,
  browser,
  frameworks,
  hermes,
  miri,
  next,
  node20,
  node22,
  openMetrics,
  redis,
  tmux,
];
export const toBench = [...toBuild, redis];

/**
 * Runs the missing set-up steps, then calls `work` with their results, under the Node of
 * package.json. Every command of the project starts here.
 */
export async function afterSetUp(steps, work) {
  try {
    // That Node is an npm package, too.
    if (await isMissing(packages)) await setUp(steps);
    if (await continuedUnderOwnNode()) return;
    await work(await setUp(steps));
  } catch (error) {
    report(error);
  }
}

if (isMain(import.meta)) await afterSetUp(toTest, () => {});
