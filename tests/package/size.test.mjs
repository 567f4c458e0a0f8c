// Bundles with the packed package are no larger than tests/package/budget.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { adapters } from "../../scripts/package.mjs";
import { freshFixture } from "./lib/project.mjs";

/** Bytes after gzip. */
const budget = JSON.parse(readFileSync(new URL("budget.json", import.meta.url), "utf8"));
const kilobytes = (bytes) => `${(bytes / 1_000).toFixed(1)} kB`;

/** Bundles an entry. Returns bytes after gzip: of what a page loads at first, and of each file that it may load later. */
async function sizesOf(project, entry) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: project,
    entryPoints: [entry],
    outdir: "out",
    platform: "browser",
    format: "esm",
    bundle: true,
    splitting: true,
    chunkNames: "[name]-[hash]",
    external: ["react"],
    minify: true,
    write: false,
    metafile: true,
  });
  const sizes = new Map(
    outputFiles.map(({ path, contents }) => [basename(path), gzipSync(contents, { level: 9 }).length]),
  );
  const first = [entry];
  for (const name of first)
    for (const { path, kind } of metafile.outputs[`out/${name}`].imports)
      if (kind === "import-statement" && path.startsWith("out/") && !first.includes(basename(path)))
        first.push(basename(path));
  const later = Object.fromEntries(
    [...sizes].map(([name, size]) => [name.replace(/-[A-Z0-9]+\.js$/, ""), size]),
  );
  return { first: first.reduce((sum, name) => sum + sizes.get(name), 0), later };
}

/** What `throttledFetch` of `tollgate/throttle` may take with a budget that tabs share. */
const sharedBudget = 29_300;

/** What learned limits may take in addition. */
const learnBudget = 1_300;

/** What a page may load in addition where WebAssembly is forbidden. */
const withoutWasmBudget = 22_300;

/** What waiting may take on top of a limiter. */
const throttleBudget = 10_500;

/** What the hooks may take on top of a throttle; React itself is the page's own. */
const reactBudget = 1_910;

/** What an adapter may take on top of the limiter, `ipKey` and the headers, which it uses. */
const adapterBudget = 11_250;

/** What that for Fastify may take, which is also a plugin, with the options of each route and decorators. */
const pluginBudget = 11_750;

test("size in a browser, bundled, minified and gzipped", async (t) => {
  const project = await freshFixture("size");
  for (const [name, most] of Object.entries(budget)) {
    await t.test(name, async (t) => {
      const { first: size } = await sizesOf(project, `${name}.js`);
      t.diagnostic(`${kilobytes(size)} of ${kilobytes(most)}`);
      assert.ok(size <= most, `${size} bytes are more than the ${most} of tests/package/budget.json`);
    });
  }
  await t.test("what throttledFetch loads only where it is needed", async (t) => {
    const { first, later } = await sizesOf(project, "throttledFetch.js");
    const [shared, withoutWasm] = [first + later.shared, later["throttle-js"]];
    assert.ok(later.learn <= learnBudget, `${later.learn} bytes are more than ${learnBudget}`);
    t.diagnostic(`with a shared budget ${kilobytes(shared)}, without wasm ${kilobytes(withoutWasm)} more`);
    assert.ok(shared <= sharedBudget, `${shared} bytes are more than ${sharedBudget}`);
    assert.ok(withoutWasm <= withoutWasmBudget, `${withoutWasm} bytes are more than ${withoutWasmBudget}`);
  });
  await t.test("Throttle and fetch on top of RateLimiter", async (t) => {
    const sizeOf = async (entry) => (await sizesOf(project, entry)).first;
    const size = (await sizeOf("Throttle.js")) - (await sizeOf("RateLimiter.js"));
    t.diagnostic(`${kilobytes(size)} of ${kilobytes(throttleBudget)}`);
    assert.ok(size <= throttleBudget, `${size} bytes are more than ${throttleBudget}`);
  });
  await t.test("the hooks for React on top of Throttle", async (t) => {
    const sizeOf = async (entry) => (await sizesOf(project, entry)).first;
    const size = (await sizeOf("react.js")) - (await sizeOf("smallThrottle.js"));
    t.diagnostic(`${kilobytes(size)} of ${kilobytes(reactBudget)}`);
    assert.ok(size <= reactBudget, `${size} bytes are more than ${reactBudget}`);
  });
  await t.test("an adapter on top of RateLimiter, ipKey and the headers", async (t) => {
    const sizeOf = async (entry) => (await sizesOf(project, entry)).first;
    const without = await sizeOf("server.js");
    for (const name of adapters) {
      const size = (await sizeOf(`${name}.js`)) - without;
      const most = name === "fastify" ? pluginBudget : adapterBudget;
      t.diagnostic(`${name}: ${kilobytes(size)} of ${kilobytes(most)}`);
      assert.ok(size <= most, `${name}: ${size} bytes are more than ${most}`);
    }
  });
});
