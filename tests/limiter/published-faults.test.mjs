// Faults that users of other limiters have published, run against this one; a peer that is installed for the bench is shown beside it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { ipKeyGenerator } from "express-rate-limit";
import { RateLimiterMemory, RateLimiterUnion } from "rate-limiter-flexible";
import { ipKey, RateLimiter, Throttle } from "tollgate";
import * as rust from "../../build/worker/tollgate.js";
import { inProject } from "../../scripts/lib/paths.mjs";

/** A limiter under a clock that only the test moves. */
function limiterAt(policies, options = {}) {
  const time = { now: 1_000_000 };
  return { time, limiter: new RateLimiter(policies, { clock: () => time.now, ...options }) };
}

/** Returns whether a peer allowed. */
const allowedBy = (promise) =>
  promise.then(
    () => true,
    () => false,
  );

test("hammer#192: a bucket refills between whole seconds", () => {
  const bucket = { algorithm: "token_bucket", capacity: 1, refillRate: 10, per: "1s" };
  const { time, limiter } = limiterAt(bucket);
  let allowed = 0;
  for (let at = 0; at < 100; at += 1) {
    allowed += Number(limiter.hit("a").allowed);
    time.now += 100;
  }
  assert.equal(allowed, 100, "ten a second, not one");
});

test("hammer#132: denied hits are not counted, unless the policy says so", async (t) => {
  const window = { algorithm: "sliding_window", limit: 2, scale: "1m" };
  const { time, limiter } = limiterAt(window);
  for (let at = 0; at < 50; at += 1) {
    limiter.hit("a");
    time.now += 1_000;
  }
  time.now += 10_000;
  assert.equal(limiter.hit("a").allowed, true, "a minute after the first hit");
  const peer = new RateLimiterMemory({ points: 2, duration: 60 });
  for (let at = 0; at < 50; at += 1) await allowedBy(peer.consume("a"));
  t.diagnostic(`rate-limiter-flexible counts ${(await peer.get("a")).consumedPoints} of 2`);
});

test("upstash/ratelimit-js#156: a cost that is denied takes nothing", async (t) => {
  const { limiter } = limiterAt({ algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "1d" });
  assert.equal(limiter.hit("a", 20).allowed, false);
  assert.deepEqual([limiter.hit("a", 10).allowed, limiter.hit("a").allowed], [true, false]);
  const peer = new RateLimiterMemory({ points: 10, duration: 60 });
  await allowedBy(peer.consume("a", 20));
  t.diagnostic(`rate-limiter-flexible then allows a cost of 10: ${await allowedBy(peer.consume("a", 10))}`);
});

test("envoyproxy/ratelimit#1060: what one policy denies takes nothing of the others", async (t) => {
  const [burst, daily] = [
    { algorithm: "fix_window", limit: 1, scale: "1s", name: "burst" },
    { algorithm: "fix_window", limit: 100, scale: "1d", name: "daily" },
  ];
  const { limiter } = limiterAt([burst, daily]);
  for (let at = 0; at < 50; at += 1) limiter.hit("a");
  assert.equal(limiter.get("a", "daily"), 1);
  const peers = [
    new RateLimiterMemory({ keyPrefix: "burst", points: 1, duration: 1 }),
    new RateLimiterMemory({ keyPrefix: "daily", points: 100, duration: 86_400 }),
  ];
  const union = new RateLimiterUnion(...peers);
  for (let at = 0; at < 50; at += 1) await allowedBy(union.consume("a"));
  t.diagnostic(`rate-limiter-flexible's union takes ${(await peers[1].get("a")).consumedPoints} of the day`);
});

test("envoyproxy/ratelimit#1077: a key that was denied is allowed as soon as its limit is higher", () => {
  const policy = { algorithm: "fix_window", limit: 1, scale: "1d" };
  const { limiter } = limiterAt(policy);
  for (let at = 0; at < 5; at += 1) limiter.hit("a");
  assert.equal(limiter.hit("a", 1, { ...policy, limit: 10 }).allowed, true, "by a plan");
  limiter.except("a", { limit: 20 }, { for: "1h" });
  assert.equal(limiter.hit("a").allowed, true, "by an exception");
});

test("hono-rate-limiter#8: nothing starts a timer, so a limiter can be made anywhere", () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const limiters = Array.from(
    { length: 20 },
    () => new RateLimiter({ algorithm: "sliding_window", limit: 9, scale: "1m" }, { cleanPeriod: "1s" }),
  );
  for (const limiter of limiters) limiter.hit("a");
  assert.equal(timers(), before);
});

test("express-rate-limit#667: all spellings of an IPv6 address are one key", (t) => {
  const spellings = [
    "2001:db8:0:0:1::1",
    "2001:DB8::1:0:0:1",
    "2001:0db8:0000:0000:0001:0000:0000:0001",
    "2001:db8::1:0:0:ffff",
  ];
  assert.equal(new Set(spellings.map((address) => ipKey(address))).size, 1);
  t.diagnostic(
    `express-rate-limit makes ${new Set(spellings.map((address) => ipKeyGenerator(address))).size} of them`,
  );
});

test("express-rate-limit CVE-2026-30827: IPv4 in IPv6 is one client each, and not one for all", (t) => {
  const clients = ["192.0.2.1", "192.0.2.2", "198.51.100.7", "203.0.113.250"];
  for (const prefix of ["::ffff:", "::FFFF:", "0:0:0:0:0:ffff:", "0000:0000:0000:0000:0000:ffff:"])
    for (const address of clients) assert.equal(ipKey(prefix + address), address);
  assert.equal(ipKey("::ffff:c000:201"), "192.0.2.1");
  const keys = new Set(clients.map((address) => ipKeyGenerator(`::ffff:${address}`)));
  t.diagnostic(`express-rate-limit makes ${keys.size} keys of ${clients.length} clients`);
});

test("CVE-2025-54568: the gateway counts a client by its address, wherever its requests come in", () => {
  rust.initSync({ module: readFileSync(inProject("build/worker/tollgate_bg.wasm")) });
  const gateway = new rust.Gateway(
    JSON.stringify({
      upstream: "ORIGIN",
      policies: { api: { algorithm: "fix_window", limit: 1, scale: "1m" } },
      rules: [{ path: "/*", key: "ip", policies: "api" }],
    }),
  );
  const plan = (headers) => gateway.plan("GET", "/", false, { get: (name) => headers[name] });
  const places = ["FRA", "SIN", "GRU"].map((place) =>
    plan({
      "cf-connecting-ip": "192.0.2.1",
      "cf-ray": `8f0000000000-${place}`,
      "cf-ipcountry": place.slice(0, 2),
    }),
  );
  assert.equal(new Set(places).size, 1);
  const others = ["192.0.2.1", "192.0.2.2"].map((address) =>
    plan({ "cf-connecting-ip": address, "cf-ray": "8f0000000000-FRA" }),
  );
  assert.equal(new Set(others).size, 2);
});

test("actix-governor#60, governor#172: memory has a bound without anybody who cleans", () => {
  const { time, limiter } = limiterAt({ algorithm: "fix_window", limit: 1, scale: "1s" }, { maxKeys: 1_000 });
  for (let at = 0; at < 100_000; at += 1) {
    limiter.hit(`192.0.2.${at}`);
    time.now += 1;
  }
  assert.ok(limiter.size <= 1_000, String(limiter.size));
});

test("node-rate-limiter#33: a call that waits can be given up, and takes no place then", async () => {
  let now = 0;
  const throttle = new Throttle(
    { algorithm: "token_bucket", capacity: 1, refillRate: 1, per: "1d" },
    { clock: () => now },
  );
  await throttle.acquire();
  const controller = new AbortController();
  const waiting = throttle.acquire({ signal: controller.signal });
  assert.equal(throttle.pending, 1);
  controller.abort(new Error("given up"));
  await assert.rejects(waiting, /given up/);
  assert.equal(throttle.pending, 0);
  now += 86_400_000;
  await throttle.acquire();
  throttle[Symbol.dispose]?.();
});
