// The packed package works in Node as ES modules and CommonJS, and under strict TypeScript.

import assert from "node:assert/strict";
import test from "node:test";
import { bin } from "../../scripts/lib/paths.mjs";
import { outputOf } from "../../scripts/lib/run.mjs";
import { expected } from "./lib/expected.mjs";
import { freshFixture, run } from "./lib/project.mjs";

const supported = (node) => Number(outputOf(node, ["-p", "parseInt(process.versions.node)"])) >= 20;

/** This Node, and whatever other the machine has. */
const nodes = new Set([
  process.execPath,
  ...(outputOf("which", ["-a", "node"])?.split("\n").filter(supported) ?? []),
]);

async function reports(project, program) {
  for (const node of nodes)
    assert.deepEqual(JSON.parse(await run(node, [program], { cwd: project })), expected);
}

test("Node, ES modules", async () => reports(await freshFixture("node-esm"), "main.js"));

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
