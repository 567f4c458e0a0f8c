// `TollgateError` is one class in all entries of the package, wherever it runs, and the client ships no wasm for it.

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import test, { before } from "node:test";
import { build } from "esbuild";
import { createTestHarness } from "wrangler";
import { freshProject, run } from "./lib/project.mjs";

let project;
before(async () => {
  project = await freshProject("error-class", "tests/package/fixtures/error-class");
});

const report = async (file) => JSON.parse(await run(process.execPath, [file], { cwd: project }));

const inNode = {
  tollgate: true,
  ai: true,
  client: true,
  redis: true,
  store: true,
  express: true,
  stores: true,
  throttle: true,
  js: true,
};

test("Node, ES modules", async () => assert.deepEqual(await report("main.mjs"), inNode));

test("Node, CommonJS", async () => assert.deepEqual(await report("main.cjs"), inNode));

/** Bundles a file for browsers. Returns its path, and the files in the chunks that are loaded with it. */
async function bundled(entry) {
  const outdir = join(project, "out");
  const options = { bundle: true, minify: true, splitting: true, format: "esm", logLevel: "warning" };
  const files = { absWorkingDir: project, entryPoints: [entry], outdir, metafile: true };
  const { outputs } = (await build({ ...options, ...files })).metafile;
  const first = `out/${entry.replace(".mjs", ".js")}`;
  const chunks = [first];
  for (const chunk of chunks)
    for (const { path, kind } of outputs[chunk].imports)
      if (kind === "import-statement" && !chunks.includes(path)) chunks.push(path);
  return {
    path: join(project, first),
    files: chunks.flatMap((chunk) => Object.keys(outputs[chunk].inputs)).map((path) => basename(path)),
  };
}

test("a bundle", async () => {
  const { path } = await bundled("page.mjs");
  assert.deepEqual(await report(path), { tollgate: true, client: true });
});

test("a bundle of the client has the class, and no wasm until there are leases", async () => {
  const { files } = await bundled("client-only.mjs");
  assert.deepEqual(files.sort(), ["client-only.mjs", "client.js", "errors.js"]);
});

test("a bundle of the throttle has its own wasm alone", async () => {
  const { files } = await bundled("throttle-only.mjs");
  assert.deepEqual(files.sort(), ["errors.js", "throttle-only.mjs", "throttle.js"]);
});

test("a Worker", async () => {
  const harness = createTestHarness({ root: project, workers: [{ configPath: "wrangler.json" }] });
  try {
    await harness.listen();
    const response = await harness.fetch("http://localhost/");
    assert.deepEqual(await response.json(), { tollgate: true, client: true, cloudflare: true });
  } finally {
    await harness.close();
  }
});
