// The examples as `npm run example` runs them from the clone, under a real load.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import test from "node:test";
import { promisify } from "node:util";
import { inProject } from "../../scripts/lib/paths.mjs";
import { adapters } from "../../scripts/package.mjs";
import { ask } from "./lib/client.mjs";

const script = inProject("scripts/example.mjs");

/** Starts an example until the test ends, and returns the address that it prints. */
async function started(t, name) {
  const example = spawn(process.execPath, [script, name], {
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(async () => {
    example.kill();
    await once(example, "exit");
  });
  for await (const line of createInterface(example.stdout)) if (line.startsWith("http://")) return line;
  return assert.fail(`the example ended with exit code ${example.exitCode}`);
}

for (const name of adapters)
  test(`${name}: exactly the limit passes`, { timeout: 120_000 }, async (t) => {
    const { port } = new URL(await started(t, name));
    const responses = await Promise.all(Array.from({ length: 100 }, () => ask(`http://localhost:${port}`)));
    assert.equal(responses.filter(({ status }) => status === 200).length, 5);
    assert.equal(responses.filter(({ status }) => status === 429).length, 95);
  });

test("an example that there is not names those there are", async () => {
  const failed = await promisify(execFile)(process.execPath, [script, "nothing"]).catch((error) => error);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr + failed.stdout, /there is no example "nothing"/);
  assert.match(failed.stderr + failed.stdout, /one of .*express, fastify, fetch/);
});
