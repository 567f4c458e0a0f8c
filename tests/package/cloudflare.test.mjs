// A Worker over `tollgate/cloudflare` of the packed package compiles, type-checks and limits.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { createTestHarness } from "wrangler";
import { bin } from "../../scripts/lib/paths.mjs";
import { wranglerEnv } from "../../scripts/lib/wrangler.mjs";
import { freshFixture, run } from "./lib/project.mjs";

/** What Cloudflare is given, gzipped. */
const budget = 267_000;

test("a Worker of one's own takes the object, the handlers and the types from the package", async () => {
  const project = await freshFixture("cloudflare");
  await run(bin("tsc"), ["-p", project]);
  const args = [bin("wrangler"), "deploy", "--dry-run", "--minify", "--outdir", "out"];
  await run(process.execPath, args, { cwd: project, env: wranglerEnv });
  const out = join(project, "out");
  const files = readdirSync(out).filter((name) => /\.(js|wasm)$/.test(name));
  const sizes = files.map((name) => gzipSync(readFileSync(join(out, name)), { level: 9 }).length);
  const size = sizes.reduce((sum, each) => sum + each, 0);
  assert.ok(size <= budget, `${size} bytes`);

  const harness = createTestHarness({
    root: project,
    workers: [{ configPath: "wrangler.json", prebuiltWorkerDir: "out" }],
  });
  try {
    await harness.listen();
    const answers = [];
    for (let count = 0; count < 3; count += 1)
      answers.push(await (await harness.fetch("http://localhost/own")).json());
    assert.deepEqual(answers, [
      { allowed: true, remaining: 1 },
      { allowed: true, remaining: 0 },
      { allowed: false, remaining: 0 },
    ]);

    const { hitAll, RemoteLimiter } = await import(
      pathToFileURL(join(project, "node_modules/tollgate/dist/client.js"))
    );
    const options = { url: "http://localhost/_tollgate", token: "fixture", policy: "api", timeout: "1m" };
    const fetch = async (request) =>
      harness.fetch(request.url, { method: "POST", headers: request.headers, body: await request.text() });
    const limiter = new RemoteLimiter({ ...options, fetch });
    const decisions = await Promise.all([limiter.hit("a"), limiter.hit("a")]);
    assert.deepEqual(decisions.map(({ allowed }) => allowed).sort(), [false, true]);

    const reservation = await limiter.reserve("b", 1, { ttl: "1h" });
    assert.equal(reservation.allowed, true);
    assert.equal((await limiter.hit("b")).allowed, false);
    const restarted = new RemoteLimiter({ ...options, fetch });
    assert.equal(await restarted.extend(reservation.id, "2h"), "extended");
    assert.equal(await restarted.cancel(reservation.id), "settled");
    assert.equal(await reservation.settle(), "closed");
    const both = [
      { limiter, key: "b" },
      { limiter, key: "a" },
    ];
    assert.equal((await hitAll(both)).allowed, false);
    assert.equal((await hitAll(both.slice(0, 1))).allowed, true);
    assert.equal((await limiter.hit("b")).allowed, false);
  } finally {
    await harness.close();
  }
});
