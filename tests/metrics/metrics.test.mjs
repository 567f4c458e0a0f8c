// metrics() counts every decision as OpenMetrics text that a real parser reads, in bounded memory, in every framework.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import test from "node:test";
import { serve } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { hitAll, RateLimiter } from "tollgate";
import { metrics } from "tollgate/metrics";
import { StoreLimiter } from "tollgate/store";
import { inProject } from "../../scripts/lib/paths.mjs";
import { parsed, samplesOf } from "./lib/parser.mjs";

const clock = () => 1_800_000_000_000;
const policy = { name: "api", algorithm: "fix_window", limit: 2, scale: "1h" };
const limiterOf = (options) => new RateLimiter(policy, { clock, ...options });

/** Counts until the test ends. */
function counting(t, options) {
  const made = metrics(options);
  t.after(() => made[Symbol.dispose]());
  return made;
}

const counts = (families, name) =>
  samplesOf(families[name]).map(([, labels, value]) => [...Object.values(labels), value]);

test("decisions by policy and result, of every limiter, once each", async (t) => {
  const made = counting(t);
  const [plain, listened] = [limiterOf(), limiterOf({ onDecision: made.onDecision })];
  for (const limiter of [plain, listened]) for (let hit = 0; hit < 3; hit++) limiter.hit("user:42");
  plain.reserve("user:43").settle();
  hitAll([
    { limiter: plain, key: "user:42" },
    { limiter: plain, key: "user:44" },
  ]);
  const store = { get: () => null, swap: () => true };
  await new StoreLimiter(policy, { store, clock }).hit("user:42");
  const families = parsed(made.text());
  const labels = { policy: "api", limiter: "memory", operation: "hit" };
  assert.deepEqual(samplesOf(families.tollgate_decisions), [
    ["tollgate_decisions_total", { ...labels, result: "allowed", by: "limiter" }, 4],
    ["tollgate_decisions_total", { ...labels, result: "denied", by: "limiter" }, 2],
    ["tollgate_decisions_total", { ...labels, operation: "reserve", result: "allowed", by: "limiter" }, 1],
    ["tollgate_decisions_total", { ...labels, operation: "hitAll", result: "denied", by: "limiter" }, 1],
    ["tollgate_decisions_total", { ...labels, operation: "hitAll", result: "withheld", by: "limiter" }, 1],
    ["tollgate_decisions_total", { ...labels, limiter: "store", result: "allowed", by: "limiter" }, 1],
  ]);
  assert.deepEqual(counts(families, "tollgate_denied"), [[3]]);
  assert.deepEqual(counts(families, "tollgate_top_denied"), [["user:42", 3]]);
  assert.deepEqual(counts(families, "tollgate_top_denied_error"), [["user:42", 0]]);
});

test("metrics that are dropped stop counting, also if nobody disposed of them", async () => {
  let shown = 0;
  const keyLabel = (key) => {
    shown += 1;
    return key;
  };
  for (let count = 0; count < 100; count += 1) metrics({ keyLabel }).text();
  const kept = metrics({ keyLabel }).fetch;
  const limiter = limiterOf();
  for (let hit = 0; hit < 2; hit += 1) limiter.hit("user:42");
  // Memory is freed in a later turn, and a finalizer runs after it.
  for (let round = 0; round < 10; round += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    gc();
  }
  shown = 0;
  assert.equal(limiter.hit("user:42").allowed, false);
  assert.equal(shown, 1, "only those whose handler is kept count");
  assert.match(await kept().text(), /tollgate_denied_total 1\n/);
});

test("durations as a histogram, which the parser finds consistent", (t) => {
  const made = counting(t);
  for (let hit = 0; hit < 50; hit++) limiterOf().hit("a");
  const { type, unit, samples } = parsed(made.text()).tollgate_decision_duration_seconds;
  assert.deepEqual([type, unit], ["histogram", "seconds"]);
  const count = samples.find(([name]) => name.endsWith("_count"));
  assert.deepEqual(count.slice(1), [{ limiter: "memory" }, "50"]);
  assert.ok(samples.some(([, { le }, value]) => le === "+Inf" && value === "50"));
});

test("errors by code and verdict, and the counters of limiters that were named", async (t) => {
  const store = { get: () => assert.fail("no connection"), swap() {} };
  const failing = new StoreLimiter(policy, { store, clock, onError: "allow" });
  const limiter = limiterOf();
  const made = counting(t, { limiters: { api: limiter, 'own "store"\n': failing } });
  await failing.hit("a");
  limiter.hit("a");
  const families = parsed(made.text());
  assert.deepEqual(counts(families, "tollgate_errors"), [["unanswered", "store", "allow", 1]]);
  assert.deepEqual(counts(families, "tollgate_limiter_keys"), [["api", 1]]);
  const events = counts(families, "tollgate_limiter_events");
  assert.deepEqual(events[0], ["api", "evicted", 0]);
  assert.ok(events.some((event) => `${event}` === 'own "store"\n,decided_without,1'));
});

test("memory and text stay bounded under a flood of keys and policy names", (t) => {
  const made = counting(t, { topKeys: 5 });
  const decision = { allowed: false, policy: "api", violated: [] };
  const message = { limiter: "other", operation: "hit", cost: 1, by: "limiter", allowed: false, duration: 1 };
  const tell = (key, policy) =>
    made.onDecision(decision, { ...message, key, decision: { ...decision, policy } });
  for (let number = 0; number < 20_000; number++) {
    tell(`key:${number}`, "api");
    tell(`${number}`.padEnd(5_000, "x"), `policy:${number}`);
    if (number % 4 === 0) tell("frequent", "api");
  }
  const text = made.text();
  assert.ok(text.length < 300_000, `${text.length} characters`);
  const families = parsed(text);
  const decisions = samplesOf(families.tollgate_decisions);
  assert.equal(decisions.length, 1_001);
  assert.equal(
    decisions.reduce((sum, [, , value]) => sum + value, 0),
    45_000,
  );
  const top = counts(families, "tollgate_top_denied");
  assert.equal(top.length, 5);
  const errors = new Map(counts(families, "tollgate_top_denied_error"));
  const [key, count] = top[0];
  assert.equal(key, "frequent");
  assert.ok(count >= 5_000 && count - errors.get(key) <= 5_000 && errors.get(key) <= 45_000 / (5 * 16));
});

test("keys and names of any text are read as they are, except what text cannot carry", (t) => {
  const made = counting(t, { topKeys: 100 });
  const limiter = limiterOf();
  const keys = ['a"b', "back\\slash", "two\nlines", "näme 🔑", '{le="1"} 7', "# EOF", "", 7, 8n];
  for (const key of [...keys, "lone \ud800", "nul\0"]) limiter.hit(key, 3);
  const shown = counts(parsed(made.text()), "tollgate_top_denied").map(([key]) => key);
  assert.deepEqual(shown.sort(), [...keys.map(String), "lone \ufffd", "nul\ufffd"].sort());
});

test("keyLabel hides keys, and one that throws breaks no hit; 0 shows none", (t) => {
  const hidden = counting(t, { keyLabel: (key) => `${String(key).length} characters` });
  const broken = counting(t, { keyLabel: () => assert.fail("mine") });
  const none = counting(t, { topKeys: 0 });
  assert.equal(limiterOf().hit("user:42", 3).allowed, false);
  assert.deepEqual(counts(parsed(hidden.text()), "tollgate_top_denied"), [["7 characters", 1]]);
  assert.deepEqual(counts(parsed(broken.text()), "tollgate_top_denied"), [["(keyLabel failed)", 1]]);
  assert.ok(!none.text().includes("top_denied"));
});

test("options that are wrong are errors that name them", () => {
  for (const options of [
    { top: 1 },
    { topKeys: -1 },
    { topKeys: 1.5 },
    { limiters: { api: 7 } },
    { keyLabel: 1 },
    7,
  ])
    assert.throws(() => metrics(options), { code: "invalid_option" }, JSON.stringify(options));
});

test("nothing is counted after it was disposed of", () => {
  const made = metrics();
  made[Symbol.dispose]();
  limiterOf().hit("a");
  assert.equal(Object.keys(parsed(made.text()).tollgate_decisions.samples).length, 0);
});

/** Servers with the route, in one line each. */
const servers = {
  express: (made) => createServer(express().get("/metrics", made.express)).listen(0, "127.0.0.1"),
  "node:http": (made) => createServer(made.express).listen(0, "127.0.0.1"),
  async fastify(made) {
    const app = Fastify().get("/metrics", made.fastify);
    await app.listen({ port: 0, host: "127.0.0.1" });
    return app.server;
  },
  hono: (made) => serve({ ...new Hono().get("/metrics", made.hono), port: 0, hostname: "127.0.0.1" }),
  koa: (made) =>
    new Koa()
      .use(made.koa)
      .use((ctx) => (ctx.body = "next"))
      .listen(0, "127.0.0.1"),
  fetch: (made) => serve({ fetch: made.fetch, port: 0, hostname: "127.0.0.1" }),
};

for (const [name, start] of Object.entries(servers))
  test(`${name}: /metrics in one line`, async (t) => {
    const made = counting(t);
    limiterOf().hit("a");
    const server = await start(made);
    if (!server.listening) await once(server, "listening");
    t.after(() => server.close());
    const { port } = server.address();
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { Connection: "close" } });
    assert.match(response.headers.get("Content-Type"), /^application\/openmetrics-text; version=1\.0\.0/);
    assert.equal(counts(parsed(await response.text()), "tollgate_decisions")[0].at(-1), 1);
    if (name !== "koa") return;
    const other = await fetch(`http://127.0.0.1:${port}/`, { headers: { Connection: "close" } });
    assert.equal(await other.text(), "next");
  });

test("every metric of the Grafana dashboard exists, with the labels that it uses", async (t) => {
  const store = { get: () => assert.fail("no connection"), swap() {} };
  const failing = new StoreLimiter(policy, { store, clock, onError: "allow" });
  const made = counting(t, { limiters: { api: limiterOf() } });
  await failing.hit("a");
  limiterOf().hit("a", 3);
  const known = new Map(
    Object.values(parsed(made.text())).flatMap(({ samples }) =>
      samples.map(([name, labels]) => [name, Object.keys(labels)]),
    ),
  );
  const text = readFileSync(inProject("examples/grafana/dashboard.json"), "utf8");
  const { panels } = JSON.parse(text);
  const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  assert.ok(queries.length >= 6);
  for (const query of queries) {
    const names = query.match(/tollgate_\w+/g);
    assert.ok(names?.length > 0, query);
    for (const name of names) assert.ok(known.has(name), `${name} in ${query}`);
    const labels = [...query.matchAll(/by \(([^)]*)\)/g), ...query.matchAll(/\{(\w+)[=!]/g)];
    for (const label of labels.flatMap(([, list]) => list.split(/, ?/)))
      assert.ok(known.get(names[0]).includes(label), `${label} in ${query}`);
  }
});
