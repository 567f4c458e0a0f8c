// An esbuild bundle of the packed package decides as the package does.

import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { build } from "esbuild";
import { expected } from "./lib/expected.mjs";
import { freshFixture, run } from "./lib/project.mjs";

test("an esbuild bundle runs", async () => {
  const project = await freshFixture("esbuild");
  const outfile = join(project, "out.js");
  await build({
    absWorkingDir: project,
    entryPoints: ["main.js"],
    outfile,
    bundle: true,
    minify: true,
    format: "esm",
    logLevel: "warning",
  });
  assert.deepEqual(JSON.parse(await run(process.execPath, [outfile])), expected);
});
