// The packed package works in every Node as CommonJS, and under strict TypeScript.

import assert from "node:assert/strict";
import test from "node:test";
import { bin } from "../../scripts/lib/paths.mjs";
import { expected } from "./lib/expected.mjs";
import { freshFixture, run } from "./lib/project.mjs";
import { nodes } from "./lib/runtimes.mjs";

async function reports(project, program) {
  for (const { program: node, why } of nodes)
    if (why === undefined)
      assert.deepEqual(JSON.parse(await run(node, [program], { cwd: project })), expected);
}

test("Node, CommonJS", async () => reports(await freshFixture("node-cjs"), "main.js"));

test("strict TypeScript", async (t) => {
  const project = await freshFixture("typescript");
  const compile = (config) => run(bin("tsc"), ["-p", config], { cwd: project });

  await t.test("moduleResolution bundler", () => compile("tsconfig.bundler.json"));
  await t.test("moduleResolution node16, compiled and run", async () => {
    await compile("tsconfig.node16.json");
    await reports(project, "out/main.js");
    await reports(project, "out/common.cjs");
  });
});
