// Exceptions over Redis: one for the fleet, exact to the millisecond, and not lost where states are not.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { connect } from "./lib/server.mjs";
import { allowed, times, withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const setting = withServer();
const { options } = setting;
const scale = "365d";
const policies = [
  { algorithm: "fix_window", limit: 10, scale, name: "api" },
  { algorithm: "token_bucket", capacity: 1_000, refillRate: 1, per: scale, name: "tokens" },
];
const hour = 3_600_000;

/** Limiters of as many processes. */
const fleetOf = (size, given, own = policies) =>
  Array.from({ length: size }, () => new RedisLimiter(own, given));

describe("one exception for all processes", () => {
  test("numbers, allow, deny and the end of each", async () => {
    const [operator, other] = fleetOf(2, options());
    await times(10, () => other.hit("a"));
    assert.equal((await other.hit("a")).allowed, false);
    const until = Date.now() + hour;
    assert.equal(
      await operator.except("a", { api: { limit: 50 }, tokens: { capacity: 60 } }, { until }),
      until,
    );
    assert.deepEqual(await other.exceptions("a"), {
      until,
      policies: { api: { limit: 50 }, tokens: { capacity: 60 } },
    });
    assert.equal((await other.hit("a", 40)).allowed, true);
    assert.equal(await other.get("a", "tokens"), 10);
    assert.equal((await other.hit("b", 11)).allowed, false);

    await operator.except("a", { allow: true }, { until });
    assert.deepEqual(await other.exceptions("a"), { until, allow: true });
    const free = await other.reserve("a", 5_000);
    assert.equal(free.allowed, true);
    assert.equal(await free.settle({ api: 7 }), "settled");
    assert.equal(await other.get("a", "api"), 50);

    await operator.except("a", { deny: true }, { for: "1d" });
    assert.equal((await other.exceptions("a")).deny, true);
    const denied = await other.hit("a");
    assert.deepEqual([denied.reason, denied.violated, denied.remaining], ["denied", [], 0]);
    assert.equal(await operator.reset("a"), true);
    assert.equal((await operator.hit("a")).reason, "denied");
    assert.ok((await operator.except("a", null)) > Date.now() + 20 * hour);
    assert.equal(await operator.except("a", null), 0);
    assert.equal(await other.exceptions("a"), null);
    assert.equal((await operator.hit("a")).allowed, true);
  });

  test("it ends by Redis's clock, to the millisecond", async () => {
    using time = new ControlledTime(setting.redis);
    const given = options({ client: time.client });
    const [operator, other] = fleetOf(2, given);
    const start = time.now;
    const until = await operator.except("a", { api: { limit: 20 } }, { for: "10m" });
    assert.equal(until, start + 600_000);
    time.now = until - 1;
    assert.equal((await other.hit("a", 15)).allowed, true);
    assert.notEqual(await other.exceptions("a"), null);
    time.now = until;
    assert.equal(await other.exceptions("a"), null);
    for (const limiter of [operator, other]) assert.equal((await limiter.hit("a")).limit, 10);
    // It has left the log as well.
    await times(100, () => other.peek("a"));
    for (let hit = 0; hit < 60; hit++) await operator.inc("a", 1, "api");
    const stranger = new RedisLimiter(policies, given);
    assert.equal(await stranger.exceptions("a"), null);
    assert.equal(await stranger.get("a", "api"), 75);
  });

  test("ten clients and two operators at once", async () => {
    const given = options();
    const clients = Array.from({ length: 10 }, () => connect(setting.server.port));
    try {
      const fleet = clients.map((client) => new RedisLimiter(policies, { ...given, client }));
      const [first, second] = fleet;
      const offers = [
        { api: { limit: 300 }, tokens: { capacity: 3_000 } },
        { api: { limit: 500 }, tokens: { capacity: 5_000 } },
      ];
      await first.except("hot", offers[0], { for: "1d" });
      const seen = [];
      const decisions = await Promise.all([
        ...[first, second].map(async (operator, number) => {
          for (let turn = 0; turn < 30; turn++) await operator.except("hot", offers[number], { for: "1d" });
          return [];
        }),
        ...fleet.map(async (limiter) => {
          const own = [];
          for (let turn = 0; turn < 60; turn++) {
            own.push(await limiter.hit("hot"));
            if (turn % 10 === 0) seen.push((await limiter.exceptions("hot")).policies);
          }
          return own;
        }),
      ]);
      const all = decisions.flat();
      const admitted = allowed(all);
      assert.ok(admitted >= 300 && admitted <= 500, `${admitted} were allowed`);
      assert.deepEqual(new Set(all.map(({ limit }) => limit)).difference(new Set([300, 500])).size, 0);
      for (const policies of seen) {
        // One of both as a whole.
        const offer = offers.find(({ api }) => api.limit === policies.api.limit);
        assert.deepEqual(policies, offer);
      }
      const [last] = await Promise.all(fleet.map((limiter) => limiter.exceptions("hot")));
      for (const limiter of fleet) {
        assert.deepEqual(await limiter.exceptions("hot"), last);
        assert.equal(await limiter.get("hot", "api"), admitted);
      }
      await second.except("hot", { deny: true }, { for: "1d" });
      // Until they have heard of it, others may deny by the limit.
      assert.equal(allowed(await Promise.all(fleet.map((limiter) => limiter.hit("hot")))), 0);
      const peeked = await Promise.all(fleet.map((limiter) => limiter.peek("hot")));
      assert.ok(peeked.every(({ reason }) => reason === "denied"));
    } finally {
      for (const client of clients) client.disconnect();
    }
  });

  test("leases take no more than an exception says, and end with it", async () => {
    using time = new ControlledTime(setting.redis);
    const given = options({ client: time.client, leases: true });
    const [operator, ...fleet] = fleetOf(4, given, { algorithm: "fix_window", limit: 10, scale: "365d" });
    await operator.except("hot", { limit: 900 }, { for: "1d" });
    let admitted = 0;
    for (let round = 0; round < 40; round++) {
      time.now += 20;
      for (const limiter of fleet) admitted += allowed(await times(10, () => limiter.hit("hot")));
    }
    assert.ok(admitted > 450 && admitted <= 900, `${admitted} were allowed`);
    await operator.except("hot", { deny: true }, { for: "1d" });
    time.now += 20_000;
    for (const limiter of fleet) assert.equal((await limiter.hit("hot", 1)).reason, "denied");
  });
});

describe("what Redis holds", () => {
  test("an exception survives a shortened log and other policies", async () => {
    const given = options();
    const [operator] = fleetOf(1, given);
    await operator.except("a", { api: { limit: 500 } }, { for: "1d" });
    for (let hit = 0; hit < 80; hit++) await operator.hit("a");
    assert.ok(operator.stats.bases > 0);
    const expected = await operator.exceptions("a");
    assert.deepEqual(await new RedisLimiter(policies, given).exceptions("a"), expected);
    // A limiter whose policies have other names keeps it, and it is there again for those that have them.
    const other = new RedisLimiter({ algorithm: "fix_window", limit: 3, scale, name: "other" }, given);
    assert.equal((await other.hit("a")).limit, 3);
    for (let hit = 0; hit < 80; hit++) await other.inc("a");
    assert.deepEqual((await other.exceptions("a")).policies, {});
    const again = new RedisLimiter(policies, given);
    assert.deepEqual(await again.exceptions("a"), expected);
    assert.equal((await again.peek("a")).limit, 500);
  });

  test("the key lives until the end of its exception", async () => {
    const given = options();
    const short = { algorithm: "fix_window", limit: 10, scale: "1s" };
    const [operator, other] = fleetOf(2, given, short);
    await operator.except("a", { limit: 50 }, { for: "400d" });
    const { key } = await setting.value(given);
    assert.ok((await setting.redis.pttl(key)) >= 400 * 24 * hour - 60_000);
    for (let hit = 0; hit < 100; hit++) await other.hit("a");
    assert.ok((await setting.redis.pttl(key)) >= 400 * 24 * hour - 60_000);
    // A key without one lives as long as it does without exceptions.
    await other.hit("b");
    const keys = await setting.redis.keys(`${given.prefix}*`);
    const plain = keys.find((name) => name !== key);
    assert.ok((await setting.redis.pttl(plain)) < 60_000);
    assert.ok(!(await setting.redis.get(plain)).includes("exception"));
  });

  test("a process that knows of it restores it", async () => {
    const given = options();
    const [operator, other] = fleetOf(2, given);
    await operator.except("a", { api: { limit: 50 } }, { for: "1d" });
    const expected = await other.exceptions("a");
    await other.hit("a", 20);
    await setting.lose();
    assert.equal((await other.hit("a", 30)).allowed, true);
    assert.equal((await other.hit("a")).allowed, false);
    assert.deepEqual(await new RedisLimiter(policies, given).exceptions("a"), expected);
  });

  test("of two exceptions before and after a loss, the later one stands", async () => {
    const given = options();
    const [knows, stranger] = fleetOf(2, given);
    await knows.except("a", { allow: true }, { for: "1d" });
    await knows.hit("a");
    await setting.lose();
    await stranger.except("a", { deny: true }, { for: "1d" });
    assert.equal((await stranger.hit("a")).reason, "denied");
    assert.equal((await knows.hit("a")).reason, "denied");
    assert.equal((await new RedisLimiter(policies, given).hit("a")).reason, "denied");
  });

  test("an argument that is rejected sends nothing", async () => {
    const given = options();
    const limiter = new RedisLimiter(
      [{ algorithm: "sliding_window", limit: 5, scale: "1h" }, policies[1]],
      given,
    );
    const wrong = [
      [{}, { for: "1d" }, "invalid_option", /an empty object is not an exception/],
      [{ tokens: { scale: "1d" } }, { for: "1d" }, "unknown_field", /"scale" is not a field of an exception/],
      [{ none: { limit: 1 } }, { for: "1d" }, "unknown_policy", /"none" is not a policy/],
      [{ sliding_window: { limit: 1_001 } }, { for: "1d" }, "invalid_option", /^sliding_window.limit: 1001/],
      [{ tokens: { capacity: 2 ** 53 - 1 } }, { for: "1d" }, "invalid_option", /^tokens.capacity: 9007/],
      [{ deny: true }, { until: Date.now() - 1 }, "invalid_option", /^until: /],
      [{ deny: true }, { for: "500d" }, "invalid_option", /^for: "500d"/],
      [{ deny: true }, undefined, "invalid_option", /^until is required/],
    ];
    for (const [exception, end, code, message] of wrong)
      await assert.rejects(limiter.except("a", exception, end), { code, message });
    await assert.rejects(limiter.except("", { deny: true }, { for: "1d" }), { code: "invalid_key" });
    assert.equal(limiter.stats.operations, 0);
  });
});
