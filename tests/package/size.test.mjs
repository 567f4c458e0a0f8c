// Bundles with the packed package are no larger than tests/package/budget.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { adapters } from "../../scripts/package.mjs";
import { freshFixture } from "./lib/project.mjs";

/** Bytes after gzip. */
const budget = JSON.parse(readFileSync(new URL("budget.json", import.meta.url), "utf8"));
const kilobytes = (bytes) => `${(bytes / 1_000).toFixed(1)} kB`;

async function bundled(project, entry) {
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: [entry],
    platform: "browser",
    format: "esm",
    bundle: true,
    external: ["react"],
    minify: true,
    write: false,
  });
  return outputFiles[0].contents;
}

/** What waiting may take on top of a limiter. */
const throttleBudget = 8_500;

/** What the hooks may take on top of a throttle; React itself is the page's own. */
const reactBudget = 1_500;

/** What an adapter may take on top of the limiter, `ipKey` and the headers, which it uses. */
const adapterBudget = 5_300;

test("size in a browser, bundled, minified and gzipped", async (t) => {
  const project = await freshFixture("size");
  for (const [name, most] of Object.entries(budget)) {
    await t.test(name, async (t) => {
      const bundle = await bundled(project, `${name}.js`);
      const size = gzipSync(bundle, { level: 9 }).length;
      t.diagnostic(`${kilobytes(size)} of ${kilobytes(most)} (${kilobytes(bundle.length)} before gzip)`);
      assert.ok(size <= most, `${size} bytes are more than the ${most} of tests/package/budget.json`);
    });
  }
  await t.test("Throttle and fetch on top of RateLimiter", async (t) => {
    const sizeOf = async (entry) => gzipSync(await bundled(project, entry), { level: 9 }).length;
    const size = (await sizeOf("Throttle.js")) - (await sizeOf("RateLimiter.js"));
    t.diagnostic(`${kilobytes(size)} of ${kilobytes(throttleBudget)}`);
    assert.ok(size <= throttleBudget, `${size} bytes are more than ${throttleBudget}`);
  });
  await t.test("the hooks for React on top of Throttle", async (t) => {
    const sizeOf = async (entry) => gzipSync(await bundled(project, entry), { level: 9 }).length;
    const size = (await sizeOf("react.js")) - (await sizeOf("Throttle.js"));
    t.diagnostic(`${kilobytes(size)} of ${kilobytes(reactBudget)}`);
    assert.ok(size <= reactBudget, `${size} bytes are more than ${reactBudget}`);
  });
  await t.test("an adapter on top of RateLimiter, ipKey and the headers", async (t) => {
    const sizeOf = async (entry) => gzipSync(await bundled(project, entry), { level: 9 }).length;
    const without = await sizeOf("server.js");
    for (const name of adapters) {
      const size = (await sizeOf(`${name}.js`)) - without;
      t.diagnostic(`${name}: ${kilobytes(size)} of ${kilobytes(adapterBudget)}`);
      assert.ok(size <= adapterBudget, `${name}: ${size} bytes are more than ${adapterBudget}`);
    }
  });
});
