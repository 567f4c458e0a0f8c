// RemoteLimiter with leases, whose wasm is in a file of its own, wherever the package runs.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { build } from "esbuild";
import { createTestHarness } from "wrangler";
import { after, before } from "../lib/hooks.mjs";
import { freshFixture, run } from "./lib/project.mjs";

let harness;
let project;
let env;
before(async () => {
  project = await freshFixture("leases");
  harness = createTestHarness({ root: project, workers: [{ configPath: "wrangler.json" }] });
  const { url } = await harness.listen();
  env = { ...process.env, TOLLGATE_URL: new URL("_tollgate", url).href };
});
after(() => harness?.close());

function check({ allowed, requests }) {
  assert.equal(allowed, 100);
  assert.ok(requests < 50, `${requests} requests`);
}

const checkProgram = async (program) =>
  check(JSON.parse(await run(process.execPath, [program], { cwd: project, env })));

test("Node, ES modules", () => checkProgram("main.js"));

test("Node, CommonJS", () => checkProgram("main.cjs"));

test("a bundle, in which the wasm is a chunk of its own", async () => {
  const outdir = join(project, "out");
  await build({
    absWorkingDir: project,
    entryPoints: ["main.js"],
    outdir,
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    logLevel: "warning",
  });
  assert.ok(readdirSync(outdir).some((name) => name.startsWith("leases-")));
  await checkProgram(join("out", "main.js"));
});

test("a Worker, in which the wasm is a module", async () => {
  check(await (await harness.fetch("http://localhost/hot")).json());
});
