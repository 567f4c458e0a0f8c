// The examples that are Workers, as wrangler bundles them, in workerd.

import assert from "node:assert/strict";
import { join } from "node:path";
import test, { before } from "node:test";
import { createTestHarness } from "wrangler";
import { bin, inProject } from "../../scripts/lib/paths.mjs";
import { patiently } from "../lib/patience.mjs";
import { edit, freshExamples, patientWorker, run } from "./lib/project.mjs";

let examples;
before(async () => {
  examples = await freshExamples("workers");
});

/** Serves these Workers until the test ends. */
async function listening(t, ...workers) {
  const harness = createTestHarness({ workers });
  t.after(() => harness.close());
  const { url } = await harness.listen();
  return { harness, url };
}

const options = { timeout: 300_000 };

test("gateway-worker: what is limited never reaches the origin", options, async (t) => {
  const folder = examples("gateway-worker");
  const configPath = join(folder, "wrangler.toml");
  await run(process.execPath, [inProject("dist/command.js"), "check", configPath]);
  const { harness } = await listening(t, patientWorker(configPath), {
    configPath: join(folder, "origin/wrangler.toml"),
  });
  const login = (address) =>
    harness.fetch("http://localhost/login", { method: "POST", headers: { "CF-Connecting-IP": address } });

  for (let count = 1; count <= 5; count += 1) {
    const response = await login("192.0.2.1");
    assert.equal(response.status, 200);
    assert.equal(await response.text(), `POST /login is request ${count}\n`);
    assert.match(response.headers.get("RateLimit"), new RegExp(`^"login";r=${5 - count};`));
  }
  for (let count = 0; count < 3; count += 1) {
    const denied = await login("192.0.2.1");
    assert.equal(denied.status, 429);
    assert.match(denied.headers.get("Retry-After"), /^3[56]\d\d$/);
    assert.deepEqual((await denied.json())["violated-policies"], ["login"]);
  }
  assert.equal(await (await login("192.0.2.2")).text(), "POST /login is request 6\n");
  assert.equal(await (await harness.fetch("http://localhost/")).text(), "GET / is request 7\n");
});

test("own-worker: strict types, and an object for each address", options, async (t) => {
  const folder = examples("own-worker");
  await run(bin("tsc"), ["-p", folder]);
  const { harness } = await listening(t, { configPath: join(folder, "wrangler.toml") });
  const ask = async (address) => {
    const response = await harness.fetch("http://localhost/", { headers: { "CF-Connecting-IP": address } });
    return [response.status, await response.text()];
  };
  assert.deepEqual(await ask("192.0.2.1"), [200, "Hello\n"]);
  assert.deepEqual(await ask("192.0.2.1"), [200, "Hello\n"]);
  assert.deepEqual(await ask("192.0.2.1"), [429, "Too many requests\n"]);
  assert.deepEqual(await ask("192.0.2.2"), [200, "Hello\n"]);
  // One IPv6 subscriber is one client, whichever of its addresses it uses.
  for (const [address, status] of [
    ["2001:db8:1:2::1", 200],
    ["2001:db8:1:2:ffff::9", 200],
    ["2001:DB8:1:2::abcd", 429],
    ["2001:db8:1:3::1", 200],
  ])
    assert.equal((await ask(address))[0], status);
});

test(
  "hono-worker: strict types, and exactly the limit of a load at once for each address",
  options,
  async (t) => {
    const folder = examples("hono-worker");
    edit(join(folder, "worker.ts"), ["limiter: (c)", "timeout: 60_000, limiter: (c)"]);
    await run(bin("tsc"), ["-p", folder]);
    const { harness } = await listening(t, { configPath: join(folder, "wrangler.toml") });
    const ask = (address) => harness.fetch("http://localhost/", { headers: { "CF-Connecting-IP": address } });
    const first = await ask("192.0.2.1");
    assert.equal(await first.text(), "Hello\n");
    assert.equal(first.headers.get("RateLimit-Policy"), '"per-ip";q=5;w=3600');
    assert.match(first.headers.get("RateLimit"), /^"per-ip";r=4;t=3[56]\d\d$/);
    const responses = await Promise.all(Array.from({ length: 40 }, () => ask("192.0.2.1")));
    assert.equal(responses.filter(({ status }) => status === 200).length, 4);
    const denied = responses.find(({ status }) => status === 429);
    assert.match(denied.headers.get("Retry-After"), /^3[56]\d\d$/);
    assert.deepEqual((await denied.json())["violated-policies"], ["per-ip"]);
    assert.equal((await ask("192.0.2.2")).status, 200);

    const login = async (token) => {
      const headers = { "CF-Connecting-IP": "192.0.2.3", Authorization: `Bearer ${token}` };
      return (await harness.fetch("http://localhost/login", { method: "POST", headers })).status;
    };
    // One after the other: a success is given back after its response.
    for (let count = 0; count < 8; count += 1) assert.equal(await login("right"), 200);
    const tries = await Promise.all(Array.from({ length: 12 }, () => login("wrong")));
    assert.deepEqual(tries.sort(), [...Array(3).fill(401), ...Array(9).fill(429)]);
    assert.equal(await login("right"), 429);
  },
);

test("shared-budget: four processes are never allowed more than one would be", options, async (t) => {
  const folder = examples("shared-budget");
  const secrets = { TOLLGATE_TOKEN: "a-secret" };
  const { url } = await listening(t, { ...patientWorker(join(folder, "wrangler.toml")), secrets });
  const env = patiently({ ...process.env, ...secrets, TOLLGATE_URL: new URL("_tollgate", url).href });
  const main = () => run(process.execPath, ["main.mjs"], { cwd: folder, env });
  assert.equal(await main(), "50 of 120 allowed\n");
  assert.equal(await main(), "0 of 120 allowed\n");
});
