// The example Worker in Rust admits exactly its limits, also after a kill, and never panics.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test from "node:test";
import { inProject } from "../../../scripts/lib/paths.mjs";
import { prepare, start } from "../../../scripts/lib/workerd.mjs";
import { after, before } from "../../lib/hooks.mjs";

/** The limits of "examples/rust-worker/src/lib.rs". */
const perUser = 100;
const perAddress = 50;

const built = inProject("build/rust-worker/build");
let folder;
let workerd;
let requests = 0;

/** An address that is not limited: each is that of 40 requests. */
function address() {
  requests += 1;
  return `10.0.${(requests / 40 / 256) | 0}.${((requests / 40) | 0) % 256}`;
}

/**
 * Opens a connection for each request, since a kept one may be closed just when it is used again; two hundred at a time,
 * since workerd hangs up on a connection whose request it has not read within seconds of accepting it.
 */
const agent = new Agent({ maxSockets: 200 });

/** Sends a request, and again if workerd has hung up, which gets no core for seconds on a busy machine. */
async function sent(path, options, tries = 5) {
  try {
    const [response] = await once(request(workerd.url + path, { ...options, agent }).end(), "response");
    return response;
  } catch (error) {
    // Not a byte came, so it was not read. One that was would be counted twice, and fail the test.
    if (error.code !== "ECONNRESET" || tries === 1) throw error;
    return sent(path, options, tries - 1);
  }
}

async function call(user, { from = address(), method = "GET", password = "" } = {}) {
  const headers = { "CF-Connecting-IP": from, Authorization: password };
  const response = await sent(`/users/${user}`, { method, headers });
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

/** How many of so many requests at once got each status. */
async function statuses(times, one) {
  const counts = {};
  for (const { status } of await Promise.all(Array.from({ length: times }, one)))
    counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tollgate-rust-worker-"));
  await prepare(folder, join(built, "index.js"), { wasm: join(built, "index_bg.wasm") });
  workerd = await start(folder);
});

after(async () => {
  await workerd?.kill();
  rmSync(folder, { recursive: true, force: true });
});

test("writes the headers of an allowed request", async () => {
  const response = await call("ann");
  assert.deepEqual([response.status, response.body], [200, "Hello, user:ann\n"]);
  assert.equal(response.headers["ratelimit-policy"], '"user";q=100;w=3600');
  assert.match(response.headers.ratelimit, /^"user";r=99;t=3600$/);
  assert.equal(response.headers["retry-after"], undefined);
});

test("allows exactly the limit of 1,000 requests at once, also after a kill", async () => {
  const { 200: allowed, 429: denied } = await statuses(1_000, () => call("bob"));
  assert.deepEqual({ allowed, denied }, { allowed: perUser, denied: 1_000 - perUser });
  const { 200: some } = await statuses(perUser - 40, () => call("carol"));
  assert.equal(some, perUser - 40);

  await workerd.kill();
  workerd = await start(folder);

  assert.deepEqual(await statuses(10, () => call("bob")), { 429: 10 });
  assert.deepEqual(await statuses(perUser, () => call("carol")), { 200: 40, 429: perUser - 40 });
});

test("denies with headers and a problem body", async () => {
  await statuses(perUser, () => call("dan"));
  const response = await call("dan");
  assert.equal(response.status, 429);
  assert.equal(response.headers["content-type"], "application/problem+json");
  assert.equal(response.headers["cache-control"], "no-store");
  const wait = Number(response.headers["retry-after"]);
  assert.ok(wait > 3_000 && wait <= 3_600, `${wait}`);
  assert.match(response.headers.ratelimit, /^"user";r=0;t=\d+$/);
  const body = JSON.parse(response.body);
  assert.deepEqual([body.status, body["violated-policies"]], [429, ["user"]]);
});

test("limits each address, IPv6 by its /64, and no other", async () => {
  const at = (last) => ({ from: `2001:db8::${last}` });
  const began = performance.now();
  const { 200: allowed } = await statuses(60, (_, number) => call(`many-${number}`, at(number.toString(16))));
  // A token more comes every six seconds.
  const more = Math.ceil((performance.now() - began) / 6_000);
  assert.ok(allowed >= perAddress && allowed <= perAddress + more, `${allowed}`);
  assert.equal((await call("elsewhere", { from: "2001:db8:0:1::1" })).status, 200);
});

test("forgets a user", async () => {
  await statuses(perUser, () => call("eve"));
  assert.equal((await call("eve")).status, 429);
  assert.equal((await call("eve", { method: "DELETE" })).body, "forgiven\n");
  assert.equal((await call("eve")).status, 200);
  assert.equal((await call("nobody-yet", { method: "DELETE" })).body, "nothing to forgive\n");
});

test("counts a login only if it fails, and tries no more than three at once, also after a kill", async () => {
  const login = (password) => call("fay/login", { method: "POST", password });
  for (let turn = 0; turn < 5; turn += 1) assert.equal((await login("right")).body, "welcome\n");
  assert.deepEqual(await statuses(40, () => login("wrong")), { 401: 3, 429: 37 });
  const denied = await login("right");
  assert.deepEqual([denied.status, JSON.parse(denied.body)["violated-policies"]], [429, ["failures"]]);

  await workerd.kill();
  workerd = await start(folder);
  assert.equal((await login("right")).status, 429);
});

test("logged no panic", () => {
  assert.doesNotMatch(workerd.said(), /panic|unreachable|Critical/);
});
