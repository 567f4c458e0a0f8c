// tollgate/store and tollgate/testing of the packed package work wherever it runs, and so does the example over SQLite.

import assert from "node:assert/strict";
import test, { before } from "node:test";
import { createTestHarness } from "wrangler";
import { bin } from "../../scripts/lib/paths.mjs";
import { freshExamples, freshProject, run } from "./lib/project.mjs";

let project;
before(async () => {
  project = await freshProject("store", "tests/package/fixtures/store");
});

const expected = { cases: 34, allowed: 5, error: "invalid_cost" };

for (const [name, program, ...args] of [
  ["Node, ES modules", process.execPath, "main.js"],
  ["Node, CommonJS", process.execPath, "main.cjs"],
  ["Bun", bin("bun"), "main.js"],
  ["Deno", bin("deno"), "run", "--no-prompt", "--cached-only", "main.js"],
])
  test(name, { timeout: 180_000 }, async () =>
    assert.deepEqual(JSON.parse(await run(program, args, { cwd: project })), expected),
  );

test("workerd", { timeout: 180_000 }, async () => {
  const harness = createTestHarness({ root: project, workers: [{ configPath: "wrangler.json" }] });
  try {
    await harness.listen();
    assert.deepEqual(await (await harness.fetch("http://localhost/")).json(), expected);
  } finally {
    await harness.close();
  }
});

test("store-sqlite: four processes are allowed the limit, and a second run nothing", {
  timeout: 180_000,
}, async () => {
  const folder = (await freshExamples("stores"))("store-sqlite");
  const main = () => run(process.execPath, ["main.mjs"], { cwd: folder });
  assert.equal(await main(), "50 of 120 allowed\n");
  assert.equal(await main(), "0 of 120 allowed\n");
});
