// The size of a Worker in the documents is that of README's own Worker, installed from the tarball and bundled by wrangler.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { bin, inProject } from "../../scripts/lib/paths.mjs";
import { wranglerEnv } from "../../scripts/lib/wrangler.mjs";
import { blocksOf } from "../documents/lib/blocks.mjs";
import { ownWorker } from "../documents/lib/workers.mjs";
import { freshProject, run } from "./lib/project.mjs";

/** How far the number may be off: not every line of code needs another one. */
const tolerance = 0.02;

/** Bytes after gzip of each file that wrangler would upload. */
async function uploaded(project) {
  const args = [bin("wrangler"), "deploy", "--dry-run", "--outdir", "out"];
  await run(process.execPath, args, { cwd: project, env: wranglerEnv });
  const files = readdirSync(join(project, "out")).filter((name) => /\.(js|wasm)$/.test(name));
  return files.map((name) => gzipSync(readFileSync(join(project, "out", name)), { level: 9 }).length);
}

test("README's Worker is as large as the documents say", async (t) => {
  const [block, ...others] = blocksOf("README.md").filter(({ run }) => run === "worker");
  assert.equal(others.length, 0, "there is one Worker in README.md");
  const project = await freshProject("worker-size", "tests/package/fixtures/empty");
  writeFileSync(join(project, "main.ts"), block.text);
  const { config } = ownWorker(block);
  writeFileSync(
    join(project, "wrangler.json"),
    JSON.stringify({ ...config, main: "main.ts", services: [], send_metrics: false }),
  );
  const sizes = await uploaded(project);
  assert.ok(sizes.length > 1, "a script and its wasm");
  const measured = sizes.reduce((sum, size) => sum + size, 0) / 1_000;
  t.diagnostic(`${measured.toFixed(1)} kB`);
  for (const document of ["README.md", "docs/troubleshooting.md"]) {
    const text = readFileSync(inProject(document), "utf8");
    const stated = Number(text.match(/(\d+) kB of script and wasm\s\(gzipped\)/)?.[1]);
    assert.ok(
      Math.abs(measured - stated) <= tolerance * measured,
      `${document} says ${stated} kB for README's Worker, which takes ${measured.toFixed(1)} kB`,
    );
  }
});
