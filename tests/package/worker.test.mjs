// A Worker that wrangler bundles with the packed package decides in workerd, with the wasm as a module.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { createTestHarness } from "wrangler";
import { bin } from "../../scripts/lib/paths.mjs";
import { wranglerEnv } from "../../scripts/lib/wrangler.mjs";
import { expected } from "./lib/expected.mjs";
import { freshFixture, run } from "./lib/project.mjs";

test("a Worker that wrangler bundles runs in workerd", async () => {
  const project = await freshFixture("worker");
  const args = [bin("wrangler"), "deploy", "--dry-run", "--outdir", "out"];
  await run(process.execPath, args, { cwd: project, env: wranglerEnv });
  assert.ok(
    readdirSync(join(project, "out")).some((name) => name.endsWith(".wasm")),
    "the wasm is a module of its own",
  );

  const harness = createTestHarness({
    root: project,
    workers: [{ configPath: "wrangler.json", prebuiltWorkerDir: "out" }],
  });
  try {
    await harness.listen();
    const response = await harness.fetch("http://localhost/");
    assert.deepEqual(await response.json(), expected);
  } finally {
    await harness.close();
  }
});
