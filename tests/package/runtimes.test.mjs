// The packed package decides, guards and waits alike in every runtime: Node, Bun, Deno, workerd, Vercel's, a browser.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import test, { before } from "node:test";
import { build } from "esbuild";
import { createTestHarness } from "wrangler";
import { bin } from "../../scripts/lib/paths.mjs";
import { wranglerEnv } from "../../scripts/lib/wrangler.mjs";
import { next } from "../../scripts/setup/next.mjs";
import { expected as report } from "./lib/expected.mjs";
import { launch, outcomeOf } from "./lib/page.mjs";
import { freshFixture, run } from "./lib/project.mjs";
import { runtimes } from "./lib/runtimes.mjs";

/** How long a runtime may take on a busy machine, in milliseconds. */
const timeout = 300_000;

/** The entries for every runtime; that of Redis is for programs. */
const entries = [".", "ai", "client", "express", "fastify", "fetch", "hono", "js", "koa", "metrics"].concat([
  "store",
  "stores",
  "testing",
  "throttle",
]);

const expected = {
  imported: entries,
  report,
  guard: {
    statuses: [200, 200, 429, 200],
    denied: { ...report.headers, "Content-Type": "application/problem+json" },
    problem: report.problem,
    addressless: "invalid_option",
  },
  shared: [1, 2, 3, 4, 5],
  throttled: ["/1", "/2", "/3", "/4"],
};

/** In workerd a request without an address is one of another Worker, whose budget it shares. */
const expectedInWorkerd = { ...expected, guard: { ...expected.guard, addressless: "went on" } };

/** The wasms of those entries, each a module of its own. */
const wasms = ["headers", "lease", "throttle"].map((name) => `tollgate-${name}.wasm`).concat("tollgate.wasm");

let project;
before(async () => {
  project = await freshFixture("runtimes");
});

for (const { name, program, args, skip } of runtimes)
  test(`${name}, and the program ends`, { skip, timeout }, async () => {
    const said = await run(program, [...args, "main.js"], { cwd: project, timeout });
    assert.deepEqual(JSON.parse(said), { ...expected, redis: "function" });
  });

test("workerd, with wasm as modules", { timeout }, async () => {
  const args = [bin("wrangler"), "deploy", "--dry-run", "--outdir", "out/worker"];
  await run(process.execPath, args, { cwd: project, env: wranglerEnv });
  const modules = readdirSync(join(project, "out/worker")).filter((name) => name.endsWith(".wasm"));
  assert.deepEqual(modules.map((name) => name.replace(/^\w+-/, "")).sort(), wasms);

  const workers = [{ configPath: "wrangler.json", prebuiltWorkerDir: "out/worker" }];
  const harness = createTestHarness({ root: project, workers });
  try {
    await harness.listen();
    const response = await harness.fetch("http://localhost/");
    assert.deepEqual(await response.json(), expectedInWorkerd);
  } finally {
    await harness.close();
  }
});

/** Takes wasm as modules that the runtime was given, as Vercel deploys them. */
const wasmGiven = (modules) => ({
  name: "wasm given",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.wasm\?module$/ }, ({ path, resolveDir }) => {
      const name = basename(path, "?module");
      modules[name] = new WebAssembly.Module(readFileSync(join(resolveDir, name)));
      return { path: name, namespace: "given" };
    });
    onLoad({ filter: /.*/, namespace: "given" }, ({ path }) => ({
      contents: `export default modules[${JSON.stringify(path)}];`,
    }));
  },
});

const { modules: packages, why: withoutNext = false } = next.check() ?? { why: "Next is not set up" };

test("Vercel's edge runtime, which compiles no wasm from bytes", { skip: withoutNext, timeout }, async () => {
  const { EdgeRuntime } = createRequire(join(packages, "x"))("edge-runtime");
  const modules = {};
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: ["edge.js"],
    conditions: ["edge-light"],
    bundle: true,
    format: "iife",
    write: false,
    plugins: [wasmGiven(modules)],
    logLevel: "warning",
  });
  const runtime = new EdgeRuntime({
    codeGeneration: { strings: false, wasm: false },
    extend: (context) => Object.assign(context, { modules }),
  });
  const empty = "new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))";
  assert.throws(() => runtime.evaluate(empty), /Wasm code generation disallowed/);

  runtime.evaluate(outputFiles[0].text);
  const response = await runtime.dispatchFetch("http://localhost/");
  assert.deepEqual(await response.json(), expected);
  assert.deepEqual(Object.keys(modules).sort(), wasms);
});

test("Chromium", { timeout }, async (t) => {
  await build({
    absWorkingDir: project,
    entryPoints: ["page.js"],
    outdir: "out",
    bundle: true,
    splitting: true,
    format: "esm",
    logLevel: "warning",
  });
  const chromium = await launch();
  t.after(() => chromium.close());
  assert.deepEqual(await outcomeOf(chromium, project), expected);
});
