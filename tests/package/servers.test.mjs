import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test, { before } from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { freshProject } from "./lib/project.mjs";

const examples = ["node-http", "express", "fastify", "hono"];

let project;
before(async () => {
  project = await freshProject("examples", "tests/package/fixtures/empty");
});

/** Starts an example in a folder of its own, and answers its port as soon as it says so. */
async function started(t, name) {
  const folder = join(project, name);
  for (const file of ["package.json", "server.mjs"])
    cpSync(inProject("examples", name, file), join(folder, file));
  const server = spawn(process.execPath, ["server.mjs"], {
    cwd: folder,
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => server.kill());
  const ended = once(server, "exit").then(([code]) => assert.fail(`the server ended with exit code ${code}`));
  const [line] = await Promise.race([once(createInterface(server.stdout), "line"), ended]);
  return new URL(line).port;
}

for (const name of examples) {
  test(`example ${name}`, { timeout: 20_000 }, async (t) => {
    const port = await started(t, name);
    for (let remaining = 4; remaining >= 0; remaining--) {
      const response = await fetch(`http://127.0.0.1:${port}/`);
      assert.equal(response.status, 200);
      assert.equal(await response.text(), "Hello\n");
      assert.equal(response.headers.get("RateLimit-Policy"), '"per-ip";q=5;w=3600');
      assert.match(response.headers.get("RateLimit"), new RegExp(`^"per-ip";r=${remaining};t=3[56]\\d\\d$`));
      assert.equal(response.headers.get("Retry-After"), null);
    }

    const denied = await fetch(`http://127.0.0.1:${port}/`);
    assert.equal(denied.status, 429);
    assert.equal(denied.headers.get("RateLimit-Policy"), '"per-ip";q=5;w=3600');
    assert.match(denied.headers.get("RateLimit"), /^"per-ip";r=0;t=3[56]\d\d$/);
    assert.match(denied.headers.get("Retry-After"), /^3[56]\d\d$/);
    assert.match(denied.headers.get("Content-Type"), /^application\/problem\+json\b/);
    const { status, type, "violated-policies": violated } = await denied.json();
    assert.equal(status, 429);
    assert.match(type, /#quota-exceeded$/);
    assert.deepEqual(violated, ["per-ip"]);
  });
}
