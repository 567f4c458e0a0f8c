// A handler that blocks the event loop is no outage: a healthy Redis, store or limiter elsewhere decides every request, and
// exactly the limit passes. The handler computes by the clock alone, as `pbkdf2Sync` would.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { RedisLimiter } from "tollgate/redis";
import { StoreLimiter } from "tollgate/store";
import { connect, startServer } from "../redis/lib/server.mjs";
import { memoryStore } from "../store/lib/stores.mjs";
import { ask } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { policyOf } from "./lib/limits.mjs";

const limit = 5;
const policy = { ...policyOf(limit), scale: "1d" };

/** Blocks the event loop. */
function block(milliseconds) {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** Returns how many of 20 requests at once pass a guard whose handler blocks the event loop for so long. */
async function passed(t, framework, guard, milliseconds) {
  const handler = () => block(milliseconds);
  const url = await served(t, framework, { "/": { guards: [guard], handler } });
  const responses = await Promise.all(Array.from({ length: 20 }, () => ask(url)));
  return responses.filter(({ status }) => status === 200).length;
}

/** Waits for so many turns of the event loop, as replies from a network do. */
async function turns(count) {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** A store over a network. */
function distantStore() {
  const store = memoryStore(Date.now);
  return {
    get: (key) => turns(1).then(() => store.get(key)),
    swap: (...args) => turns(1).then(() => store.swap(...args)),
  };
}

test("over a healthy Redis", { timeout: 120_000 }, async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const server = await startServer();
  const client = connect(server.port);
  t.after(async () => {
    client.disconnect();
    await server.stop();
  });
  await client.ping();
  const key = () => "a";
  // Long enough for a Redis on a busy machine, and shorter than what one handler takes.
  const limiter = new RedisLimiter(policy, { client, timeout: 500, onError: "allow" });
  assert.equal(await passed(t, frameworks.express, { limiter, key, onError: "allow" }, 600), limit);
  // And with the guard's own timeout.
  const patient = new RedisLimiter(policy, { client, name: "patient", timeout: "20s" });
  assert.equal(await passed(t, frameworks.fastify, { limiter: patient, key, timeout: 500 }, 600), limit);
  assert.equal(warned.mock.callCount(), 0);
});

test("over a store of one's own, and over any limiter", { timeout: 120_000 }, async (t) => {
  const guard = { timeout: 100, key: () => "a" };
  const limiter = new StoreLimiter(policy, { store: distantStore(), timeout: 100, onError: "allow" });
  assert.equal(await passed(t, frameworks.express, { ...guard, limiter }, 150), limit);
  const memory = new RateLimiter(policy);
  let asked = 0;
  const other = {
    policies: [policy],
    // Each reply comes in a turn of its own, after another handler.
    hit: async (key) => {
      const decision = memory.hit(key);
      await turns(++asked / 2);
      return decision;
    },
  };
  assert.equal(await passed(t, frameworks.express, { ...guard, limiter: other }, 150), limit);
});
