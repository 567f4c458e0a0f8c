// A fleet in the middle of a deploy: some processes have other numbers, or another version.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { allowed, times, withServer } from "./lib/setting.mjs";

const setting = withServer();
const { options, value } = setting;

test("a changed limit applies to what is counted, for each process by its own policy", async () => {
  const given = options();
  const low = new RedisLimiter({ algorithm: "fix_window", limit: 5, scale: "365d" }, given);
  const high = new RedisLimiter({ algorithm: "fix_window", limit: 8, scale: "365d" }, given);
  assert.equal(allowed(await times(20, (number) => (number % 2 === 0 ? low : high).hit("a"))), 8);
  assert.equal((await low.peek("a")).count, 8);
  assert.equal(await low.reset("a"), true);
  assert.equal(allowed(await times(20, () => low.hit("a"))), 5);
  // A denial would hold for two seconds; a peek asks Redis.
  await high.peek("a");
  assert.equal(allowed(await times(20, () => high.hit("a"))), 3);
});

test("two scales that alternate admit what each of them says", async () => {
  const given = options();
  const hour = { algorithm: "fix_window_per_key", limit: 10, scale: "1h" };
  const fleet = [new RedisLimiter(hour, given), new RedisLimiter({ ...hour, scale: "2h" }, given)];
  let admitted = 0;
  for (let round = 0; round < 40; round++)
    admitted += allowed([await fleet[round % 2].hit("a"), await fleet[round % 2].hit("a")]);
  assert.equal(admitted, 20);
});

test("two limiters on one key each keep their own count, also in shortened logs", async () => {
  const given = options();
  const [api, other] = ["api", "other"].map((name) => {
    return new RedisLimiter({ algorithm: "fix_window", limit: 500, scale: "365d", name }, given);
  });
  for (let hit = 0; hit < 40; hit++) await api.hit("a");
  for (let hit = 1; hit <= 80; hit++) {
    assert.equal((await other.hit("a")).count, hit);
    if (hit % 8 === 0) assert.equal(await api.get("a"), 40);
  }
  assert.ok(other.stats.bases > 0);
});

test("policies that change all the time cost one call each", async () => {
  const given = options();
  const fleet = [5_000, 6_000, 7_000].map(
    (limit) =>
      new RedisLimiter({ algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: "1d" }, given),
  );
  for (let round = 0; round < 5; round++) for (const limiter of fleet) await limiter.hit("a");
  const before = fleet.map(({ stats }) => stats.calls);
  for (let round = 0; round < 10; round++) for (const limiter of fleet) await limiter.hit("a");
  const calls = fleet.map(({ stats }, who) => stats.calls - before[who]);
  assert.deepEqual(calls, [10, 10, 10]);
  assert.equal(await fleet[0].get("a"), 45);
});

test("every shape of a key has its own state in one value, and a name gives other keys", async () => {
  const given = options();
  const window = { algorithm: "fix_window", limit: 5, scale: "365d" };
  const bucket = { algorithm: "token_bucket", capacity: 5, refillRate: 1, per: "1d" };
  await new RedisLimiter(window, given).hit("a", 3);
  await new RedisLimiter(bucket, given).hit("a", 4);
  assert.equal(await new RedisLimiter({ ...window, limit: 50 }, given).get("a"), 3);
  assert.equal(await new RedisLimiter({ ...window, scale: "1h" }, given).get("a"), 0);
  assert.equal(await new RedisLimiter(bucket, given).get("a"), 1);
  assert.equal((await setting.redis.keys(`${given.prefix}*`)).length, 1);
  const named = { ...options(), name: "api" };
  await new RedisLimiter(window, named).hit("a", 3);
  assert.equal((await new RedisLimiter(bucket, named).hit("a", 4)).allowed, true);
  assert.equal((await value(named)).key, `${named.prefix}4:api:a`);
});

test("several policies, each by its name", async () => {
  const given = options();
  const minute = { algorithm: "sliding_window", limit: 5, scale: "1h", name: "burst" };
  const day = { algorithm: "token_bucket", capacity: 8, refillRate: 1, per: "1d", name: "day" };
  const limiter = new RedisLimiter([minute, day], given);
  const decisions = await times(10, () => limiter.hit("a"));
  assert.equal(allowed(decisions), 5);
  assert.deepEqual(decisions[9].violated, ["burst"]);
  assert.equal(await limiter.get("a", "day"), 3);
  // A later version has the burst raised.
  const later = new RedisLimiter([{ ...minute, limit: 100 }, day], given);
  const more = await times(10, () => later.hit("a"));
  assert.equal(allowed(more), 3);
  assert.deepEqual(more[9].violated, ["day"]);
  assert.equal((await limiter.hit("a")).allowed, false);
});

test("two versions that alternate on one key admit what each of them says, for every pair of shapes", async () => {
  const versions = [
    { algorithm: "fix_window", limit: 20, scale: "365d" },
    { algorithm: "fix_window_per_key", limit: 20, scale: "1h" },
    { algorithm: "fix_window_per_key", limit: 20, scale: "2h" },
    { algorithm: "sliding_window", limit: 20, scale: "1h" },
    { algorithm: "sliding_counter", limit: 20, scale: "365d" },
    { algorithm: "token_bucket", capacity: 20, refillRate: 1, per: "1d" },
    { algorithm: "leaky_bucket", capacity: 20, leakRate: 1, per: "1d" },
  ].map((version) => ({ ...version, name: "api" }));
  for (const [index, first] of versions.entries())
    for (const second of versions.slice(index + 1)) {
      const given = options();
      const fleet = [new RedisLimiter(first, given), new RedisLimiter(second, given)];
      const admitted = [0, 0];
      for (let round = 0; round < 30; round++)
        for (const who of [0, 1]) admitted[who] += allowed([await fleet[who].hit("a")]);
      assert.deepEqual(admitted, [20, 20], `${first.algorithm} and ${second.algorithm}`);
    }
});

test("a deploy that adds, changes and drops a ban: each version finds what the others left", async () => {
  const given = options();
  const window = { algorithm: "fix_window", limit: 1, scale: "365d", name: "once" };
  const ban = { algorithm: "ban", after: 3, scale: "1d", for: "1d" };
  const before = new RedisLimiter(window, given);
  const added = new RedisLimiter([window, ban], given);
  const changed = new RedisLimiter([window, { ...ban, after: 9, scale: "1h", for: "1h" }], given);
  // Denials count where the version has a ban, and the shape of a ban is its name alone.
  assert.equal(allowed(await times(4, () => before.hit("a"))), 1);
  await times(2, () => added.hit("a"));
  await before.peek("a");
  assert.equal(await changed.get("a", "ban"), 2);
  await changed.hit("a");
  assert.equal((await added.peek("a")).reason, "banned");
  await added.hit("a");
  const until = await added.expiresAt("a", "ban");
  // Versions without it neither obey nor forget it, and the length is that of the version that began it.
  assert.equal(await before.set("a", 0), 0);
  assert.equal((await before.hit("a")).allowed, true);
  assert.equal((await changed.hit("a")).reason, "banned");
  assert.equal(await changed.expiresAt("a", "ban"), until);
  assert.equal(await changed.unban("a"), true);
  await before.set("a", 0);
  // A ban is repeated for two seconds; a peek asks Redis.
  await added.peek("a");
  assert.equal((await added.hit("a")).allowed, true);
});
