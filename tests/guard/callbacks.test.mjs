// Functions of the options that fail, are late or return nothing are a decision and a line of the log: never an unhandled
// rejection, a request that hangs, or one that passes. So are keys that a client made invalid, over every limiter alike.

import assert from "node:assert/strict";
import test, { describe, mock } from "node:test";
import { RateLimiter } from "tollgate";
import { RedisLimiter } from "tollgate/redis";
import { elapse } from "../lib/elapse.mjs";
import { connect, startServer } from "../redis/lib/server.mjs";
import { ask } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf, promised } from "./lib/limits.mjs";

const warn = mock.method(console, "warn", () => {});
const lines = () => warn.mock.calls.map(({ arguments: [line] }) => line);
/** Lets a minute pass since the last line, which are at most one a minute. */
const forgetLines = (t) => {
  const { now } = performance;
  const start = now.call(performance) + 61_000 * ++minutes;
  t.mock.method(performance, "now", () => start);
  warn.mock.resetCalls();
};
let minutes = 0;

const never = () => new Promise(() => {});
const policy = policyOf(5);
const key = () => "user:42";

for (const [name, framework] of Object.entries(frameworks)) {
  const serve = (t, options, handler) => served(t, framework, { "/": { guards: [options], handler } });

  describe(name, () => {
    test("a charge that rejects, or never resolves, charges what was reserved", async (t) => {
      forgetLines(t);
      for (const charge of [async () => Promise.reject(new Error("no plan")), async () => -1]) {
        const limiter = limiterOf(policy);
        const url = await serve(t, { limiter, key, charge, cost: 2 });
        assert.equal((await ask(url)).status, 200);
        while (limiter.get("user:42") !== 2) await new Promise(setImmediate);
      }
      assert.match(lines()[0], /^tollgate: charge failed, so what was reserved is charged: Error: no plan$/);
      assert.equal(lines().length, 1);

      const limiter = limiterOf(policy);
      const counted = await serve(t, { limiter, key, charge: async () => 3 });
      assert.equal((await ask(counted)).status, 200);
      while (limiter.get("user:42") !== 3) await new Promise(setImmediate);

      mock.timers.enable({ apis: ["setTimeout"] });
      t.after(() => mock.timers.reset());
      const late = limiterOf(policy);
      const asked = promised();
      const charge = () => {
        asked.resolve();
        return never();
      };
      const options = { limiter: late, key, timeout: 50, charge };
      assert.equal((await ask(await serve(t, options))).status, 200);
      await asked.promise;
      await elapse(mock.timers, 60);
      assert.equal(late.get("user:42"), 1);
    });

    for (const option of ["key", "cost", "skip", "policyFor"])
      test(`a ${option} that never resolves is a 503 after the timeout`, async (t) => {
        forgetLines(t);
        mock.timers.enable({ apis: ["setTimeout"] });
        t.after(() => mock.timers.reset());
        const asked = promised();
        const late = () => {
          asked.resolve();
          return never();
        };
        const url = await serve(t, { policy, key, timeout: 50, onError: "allow", [option]: late }, () =>
          assert.fail("it passed"),
        );
        const response = ask(url);
        await asked.promise;
        await elapse(mock.timers, 60);
        assert.equal((await response).status, 503);
        assert.match(lines()[0], new RegExp(`^tollgate: ${option} failed, .*took longer than 50 ms`));
      });

    test("a policyFor that returns null leaves the guard's own policy", async (t) => {
      for (const nothing of [null, undefined]) {
        const url = await serve(t, { policy: policyOf(1), key, policyFor: async () => nothing });
        assert.deepEqual([(await ask(url)).status, (await ask(url)).status], [200, 429]);
      }
      forgetLines(t);
      const url = await serve(t, { key, policyFor: () => null });
      assert.equal((await ask(url)).status, 503);
      assert.match(lines()[0], /policyFor failed, .*policy is required/);
    });

    test("a customer whose limit is 0 is denied", async (t) => {
      const plans = [
        { name: "none", algorithm: "fix_window", limit: 0, scale: "1m" },
        { name: "none", algorithm: "token_bucket", capacity: 0, refillRate: 1 },
        [policy, { name: "none", algorithm: "sliding_window", limit: 0, scale: "1m" }],
      ];
      for (const plan of plans) {
        const seen = [];
        const onDecision = ({ allowed, limit, policy }) => seen.push([allowed, limit, policy]);
        const url = await serve(t, { key, policyFor: () => plan, onDecision });
        const { status, headers } = await ask(url);
        assert.deepEqual([status, headers["retry-after"]], [429, undefined]);
        assert.deepEqual(seen, [[false, 0, "none"]]);
      }
    });

    test("an invalid key is a 400 and a line a minute, or its hash is the key", async (t) => {
      forgetLines(t);
      const invalid = [
        "x".repeat(2_000),
        "é".repeat(513),
        "a\ud800",
        "",
        {},
        [],
        undefined,
        null,
        Number.NaN,
        true,
      ];
      for (const found of invalid) {
        const limiter = limiterOf(policy);
        const url = await serve(t, { limiter, key: () => found, onError: "allow" }, () =>
          assert.fail("it passed"),
        );
        const { status, headers, body } = await ask(url);
        assert.deepEqual([status, JSON.parse(body).status], [400, 400]);
        assert.match(headers["content-type"], /^application\/problem\+json/);
        assert.equal(limiter.size, 0);
      }
      assert.equal(lines().length, 1);
      assert.match(lines()[0], /^tollgate: a request gets a 400, since its key is invalid: .*"xxx/);

      const limiter = new RateLimiter(policyOf(1));
      const keys = ["x".repeat(2_000), "x".repeat(2_001), "a\ud800", "a\ud801", "ok", 7];
      let found;
      const url = await serve(t, { limiter, key: () => found, longKeys: "hash" });
      for (found of keys) {
        assert.equal((await ask(url)).status, 200, String(found).slice(0, 9));
        assert.equal((await ask(url)).status, 429);
      }
      assert.equal(limiter.size, keys.length);
      for (found of ["", {}, undefined]) assert.equal((await ask(url)).status, 400);
    });
  });
}

test("keys are accepted in Redis as in memory", { timeout: 120_000 }, async (t) => {
  const server = await startServer();
  const client = connect(server.port);
  t.after(async () => {
    client.disconnect();
    await server.stop();
  });
  const statuses = { memory: [], redis: [] };
  let found;
  for (const [kind, limiter] of [
    ["memory", new RateLimiter(policy)],
    ["redis", new RedisLimiter(policy, { client, timeout: "20s" })],
  ])
    for (const longKeys of ["reject", "hash"]) {
      const guards = [{ limiter, key: () => found, longKeys, timeout: 60_000 }];
      const url = await served(t, frameworks.express, { "/": { guards } });
      for (found of [
        "x".repeat(1_024),
        "x".repeat(1_025),
        "é".repeat(512),
        "é".repeat(513),
        "\udc00",
        "",
        7,
        {},
      ])
        statuses[kind].push((await ask(url)).status);
    }
  assert.deepEqual(statuses.redis, statuses.memory);
  assert.deepEqual(statuses.memory.slice(0, 8), [200, 400, 200, 400, 400, 400, 200, 400]);
  assert.deepEqual(statuses.memory.slice(8), [200, 200, 200, 200, 200, 400, 200, 400]);
});
