// After the changes of the migration guides, other rate limiters' programs behave the same.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import test, { before, mock } from "node:test";
import { getRequestListener } from "@hono/node-server";
import { createTestHarness } from "wrangler";
import { inProject } from "../../scripts/lib/paths.mjs";
import "../lib/patience.mjs";
import { seeded } from "../lib/random.mjs";
import { startServer } from "../redis/lib/server.mjs";
import { edit, freshExamples, patientWorker } from "./lib/project.mjs";

let folder;
before(async () => {
  folder = (await freshExamples("migrate"))("migrate");
});

const started = 1_767_225_600_000;

/** Time stands still from here on, and is set. The modules must be loaded after: they keep the clock they find. */
function withClock(t) {
  mock.timers.enable({ apis: ["Date"], now: started });
  t.after(() => mock.timers.reset());
}

const load = (peer) =>
  Promise.all(["before", "after"].map((name) => import(join(folder, peer, `${name}.mjs`))));

/** The same numbers each time: traffic that comes in bursts, from a few keys, with some costs, over a few windows. */
function* traffic(count) {
  const random = seeded(20_260_101);
  let at = started;
  for (let sent = 0; sent < count; sent += 1) {
    at += random(3) === 0 ? random(25_000) : 0;
    yield { at, key: `user:${random(3)}`, cost: 1 + (random(4) === 0 ? random(5) : 0) };
  }
}

/** Both answer the same all the way, and were both allowed and denied. */
async function alike(requests, before, after) {
  const seen = new Set();
  for (const request of requests) {
    mock.timers.setTime(request.at);
    const [was, is] = [await before(request), await after(request)];
    assert.deepEqual(is, was, JSON.stringify(request));
    seen.add(is.allowed);
  }
  assert.deepEqual([...seen].sort(), [false, true]);
}

async function listening(t, app) {
  const server = app.listen(0);
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${server.address().port}/`;
}

/** What a client is told: both name the policy as they like. */
async function told(url) {
  const { status, headers } = await fetch(url, { headers: { Connection: "close" } });
  const [, remaining, reset] = headers.get("RateLimit").match(/r=(\d+); ?t=(\d+)$/);
  const [, quota, window] = headers.get("RateLimit-Policy").match(/q=(\d+); ?w=(\d+)/);
  const retryAfter = headers.get("Retry-After");
  return { allowed: status === 200, status, remaining, reset, quota, window, retryAfter };
}

test("express-rate-limit: the same statuses, headers and waits", { timeout: 120_000 }, async (t) => {
  withClock(t);
  const modules = await load("express-rate-limit");
  const [before, after] = await Promise.all(modules.map(({ app }) => listening(t, app)));
  await alike(
    traffic(60),
    () => told(before),
    () => told(after),
  );
});

/** What a client is told by the older headers, which are Fastify's. */
async function toldByOlder(url) {
  const { status, headers } = await fetch(url, { headers: { Connection: "close" } });
  const of = (name) => headers.get(name);
  const limits = ["limit", "remaining", "reset"].map((name) => of(`X-RateLimit-${name}`));
  return { allowed: status === 200, status, limits, retryAfter: of("Retry-After") };
}

test("@fastify/rate-limit: the same statuses, headers and waits", { timeout: 120_000 }, async (t) => {
  withClock(t);
  const modules = await load("fastify-rate-limit");
  const [before, after] = await Promise.all(
    modules.map(({ app }) => {
      t.after(() => app.close());
      return app.listen({ port: 0 });
    }),
  );
  await alike(
    traffic(60),
    () => toldByOlder(before),
    () => toldByOlder(after),
  );
});

test("hono-rate-limiter: the same statuses and waits", { timeout: 120_000 }, async (t) => {
  withClock(t);
  const modules = await load("hono-rate-limiter");
  const [before, after] = await Promise.all(
    modules.map(({ app }) => listening(t, createServer(getRequestListener(app.fetch)))),
  );
  const toldBy = async (url, remainingOf) => {
    const { status, headers } = await fetch(url, { headers: { Connection: "close" } });
    const [, remaining] = headers.get("RateLimit").match(remainingOf);
    return { allowed: status === 200, status, remaining, retryAfter: headers.get("Retry-After") };
  };
  await alike(
    traffic(60),
    () => toldBy(before, /remaining=(\d+)/),
    () => toldBy(after, /r=(\d+)/),
  );
});

test("rate-limiter-flexible: the same decisions for any costs", async (t) => {
  withClock(t);
  const [before, after] = await load("rate-limiter-flexible");
  await alike(
    traffic(1_000),
    ({ key, cost }) => before.consume(key, cost),
    ({ key, cost }) => after.consume(key, cost),
  );
});

/**
 * Starts a Redis for the examples of a pair, and loads both. A Redis that is late is not what is tested, and no window
 * ends meanwhile.
 */
async function loadWithRedis(t, peer, [before, after]) {
  edit(join(folder, peer, "before.mjs"), before);
  edit(join(folder, peer, "after.mjs"), ['timeout: "2s"', 'timeout: "30s"'], ['"1m"', '"1h"'], ...after);
  const server = await startServer();
  process.env.REDIS_URL = `redis://127.0.0.1:${server.port}`;
  const modules = await load(peer);
  t.after(async () => {
    for (const { client } of modules) client.disconnect();
    await server.stop();
  });
  return modules;
}

test("rate-limiter-flexible with Redis: the same decisions for any costs", {
  timeout: 120_000,
}, async (t) => {
  const changes = [["duration: 60", "duration: 3_600"], []];
  const [before, after] = await loadWithRedis(t, "rate-limiter-flexible-redis", changes);
  const seen = new Set();
  const began = performance.now();
  for (const { key, cost } of traffic(100)) {
    const [was, is] = [await before.consume(key, cost), await after.consume(key, cost)];
    // The two are asked one after the other, and time passes; a cost that never fits has no wait here.
    const passed = performance.now() - began + 1_000;
    if (cost <= 5) assert.ok(Math.abs(is.wait - was.wait) < passed, `${is.wait} is not ${was.wait}`);
    assert.deepEqual({ ...is, wait: 0 }, { ...was, wait: 0 });
    seen.add(is.allowed);
  }
  assert.equal(seen.size, 2);
});

test("rate-limit-redis: the same statuses and headers", { timeout: 120_000 }, async (t) => {
  const changes = [
    ["windowMs: 60_000", "windowMs: 3_600_000"],
    [["rateLimit({ limiter,", "rateLimit({ limiter, timeout: 60_000,"]],
  ];
  const modules = await loadWithRedis(t, "rate-limit-redis", changes);
  const [before, after] = await Promise.all(modules.map(({ app }) => listening(t, app)));
  const began = performance.now();
  for (let request = 0; request < 8; request++) {
    const [was, is] = [await told(before), await told(after)];
    const passed = (performance.now() - began) / 1_000 + 2;
    assert.ok(Math.abs(is.reset - was.reset) < passed, `${is.reset} is not ${was.reset}`);
    assert.equal(is.allowed, request < 5);
    const { reset: _reset, retryAfter, ...rest } = is;
    const { reset: _was, retryAfter: wasRetryAfter, ...wasRest } = was;
    assert.deepEqual(rest, wasRest);
    assert.equal(retryAfter === null, wasRetryAfter === null);
  }
});

test("@upstash/ratelimit: a Worker in place of Redis decides the same", { timeout: 300_000 }, async (t) => {
  const root = join(folder, "upstash-ratelimit");
  const harness = createTestHarness({
    root,
    workers: [{ ...patientWorker(join(root, "wrangler.toml")), secrets: { TOLLGATE_TOKEN: "secret" } }],
  });
  t.after(() => harness.close());
  const { url } = await harness.listen();
  Object.assign(process.env, { TOLLGATE_URL: new URL("_tollgate", url).href, TOLLGATE_TOKEN: "secret" });
  const [before, after] = await load("upstash-ratelimit");
  const answers = async (today) => {
    const pairs = [];
    for (const name of ["a", "b", "a", "a", "a", "a", "b", "a", "a"]) {
      const key = `${today}/${name}`;
      const began = performance.now();
      pairs.push([await before.ask(key), await after.ask(key), performance.now() - began]);
    }
    return pairs;
  };
  // workerd has its own clock, so both sides count by the day. If that ends meanwhile, they are asked again.
  const day = () => Math.floor(Date.now() / 86_400_000);
  let [today, pairs] = [day(), await answers(day())];
  if (day() !== today) [today, pairs] = [day(), await answers(day())];
  for (const [was, is, passed] of pairs) {
    // The two are asked one after the other, and each reads the time for itself.
    assert.ok(Math.abs(is.reset - was.reset) < passed + 1_000, `${is.reset} is not ${was.reset}`);
    assert.deepEqual({ ...is, reset: 0 }, { ...was, reset: 0 });
  }
  const allowed = pairs.map(([, is]) => is.allowed);
  assert.deepEqual(allowed, [true, true, true, true, true, true, true, false, false]);
});

test("@upstash/ratelimit: its fixed window is fix_window", async (t) => {
  withClock(t);
  const { RateLimiter } = await import(join(folder, "../node_modules/tollgate/dist/index.js"));
  const limiter = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1d" });
  const [before] = await load("upstash-ratelimit");
  const slower = [...traffic(1_000)].map(({ at, key }) => ({ at: started + (at - started) * 1_000, key }));
  await alike(
    slower,
    ({ key }) => before.ask(key),
    ({ at, key }) => {
      const { allowed, limit, remaining, resetAfter } = limiter.hit(key);
      return { allowed, limit, remaining, reset: at + resetAfter };
    },
  );
});

test("Hammer: the decisions that were recorded from it", async (t) => {
  withClock(t);
  const { hit, inc, set, get, expiresAt } = await import(join(folder, "hammer/after.mjs"));
  const traces = JSON.parse(readFileSync(inProject("tests/vectors/fix_window.json"), "utf8"));
  for (const [number, { policy, ops }] of traces.entries()) {
    const { limit, scale } = policy;
    for (const { at, op, key: name, cost, count, expect } of ops) {
      mock.timers.setTime(at);
      const key = `${number}/${name}`;
      const answer = {
        hit: () => hit(key, scale, limit, cost),
        inc: () => ({ value: inc(key, scale, cost) }),
        set: () => ({ value: set(key, scale, count) }),
        get: () => ({ value: get(key, scale) }),
        expires_at: () => ({ value: expiresAt(key, scale) }),
      }[op]();
      if (answer.deny === Number.POSITIVE_INFINITY) answer.deny = "never";
      if (expect.deny === "any" && answer.deny > 0) answer.deny = "any";
      assert.deepEqual(answer, expect, `${op} at ${at} in trace ${number}`);
    }
  }
});
