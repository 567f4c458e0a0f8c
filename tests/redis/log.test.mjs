// The log of a key: how it is written, read, shortened and kept.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { allowed, through, times, withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";
import { entry } from "./lib/value.mjs";

const setting = withServer();
const { options, value } = setting;
/** So long that no window ends while a test runs. */
const window = { algorithm: "fix_window", limit: 1_000, scale: "365d" };

describe("calls", () => {
  test("all hits of one tick on one key go in one entry", async () => {
    const given = options();
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("a");
    const { calls } = limiter.stats;
    const decisions = await times(100, () => limiter.hit("a"));
    assert.deepEqual(
      decisions.map(({ count }) => count),
      Array.from({ length: 100 }, (_, number) => number + 2),
    );
    assert.equal(limiter.stats.calls, calls + 1);
    assert.match((await value(given)).text, /h\*100!/);
  });

  test("operations that wait for a key are sent in its next call, in order", async () => {
    const limiter = new RedisLimiter(window, options());
    const results = await Promise.all([
      limiter.get("a"),
      limiter.hit("a", 3),
      limiter.inc("a", 4),
      limiter.get("a"),
      limiter.set("a", 9),
      limiter.hit("a"),
      limiter.peek("a", 2),
      limiter.reset("a"),
      limiter.reset("a"),
      limiter.hit("a"),
    ]);
    const counts = results.map((result) => result.count ?? result);
    assert.deepEqual(counts, [0, 3, 7, 7, 9, 10, 12, true, false, 1]);
  });

  test("different runs of hits keep their places", async () => {
    const limiter = new RedisLimiter(window, options());
    await limiter.peek("a");
    const costs = Array.from({ length: 400 }, (_, number) => 1 + (number % 2));
    const decisions = await Promise.all(costs.map((cost) => limiter.hit("a", cost)));
    let sum = 0;
    for (const [number, cost] of costs.entries()) {
      sum += cost;
      assert.equal(decisions[number].count, sum);
    }
  });

  test("the numbers of a call are those of that call only", async () => {
    const limiter = new RedisLimiter({ ...window, limit: 5 }, options());
    const wider = { ...window, limit: 8 };
    await limiter.hit("a", 5);
    assert.equal((await limiter.hit("a", 2, wider)).remaining, 1);
    assert.equal((await limiter.peek("a", 1, wider)).allowed, true);
    assert.equal((await limiter.hit("a")).allowed, false);
    const [first, second] = await times(2, () => limiter.hit("a", 1, wider));
    assert.deepEqual([first.allowed, second.allowed], [true, false]);
    await assert.rejects(limiter.hit("a", 1, { ...window, scale: "1h" }), { code: "policy_mismatch" });
  });
});

describe("the value", () => {
  test("stays short, however many hits there are", async () => {
    const given = options();
    const fleet = Array.from({ length: 3 }, () => new RedisLimiter(window, given));
    for (let round = 0; round < 300; round++) await times(3, (who) => fleet[who].hit("a"));
    const { text } = await value(given);
    assert.ok(text.length < 2_500, `${text.length} bytes`);
    assert.ok(fleet.reduce((sum, { stats }) => sum + stats.bases, 0) > 5);
    assert.equal(await fleet[0].get("a"), 900);
  });

  test("is tidied by a caller who only ever hits once", async () => {
    const given = options();
    const long = new RedisLimiter(window, given);
    await long.hit("a");
    const { key } = await value(given);
    // Entries of others, who left them there.
    await setting.redis.append(key, Array.from({ length: 50 }, (_, number) => entry("h1", number)).join(""));
    const once = new RedisLimiter(window, given);
    assert.equal((await once.hit("a")).count, 52);
    // The follow-up is sent by itself.
    while ((await setting.redis.strlen(key)) > 300);
    assert.equal(await new RedisLimiter(window, given).get("a"), 52);
  });

  test("past 64 kB is read, shortened and then used", async () => {
    const given = options();
    await new RedisLimiter({ ...window, limit: 5_000 }, given).hit("a");
    const { key } = await value(given);
    const entries = Array.from({ length: 4_000 }, (_, number) => entry("h1", number));
    await setting.redis.append(key, entries.join(""));
    assert.ok((await setting.redis.strlen(key)) > 65_536);
    const limiter = new RedisLimiter({ ...window, limit: 5_000 }, given);
    assert.equal((await limiter.hit("a")).count, 4_002);
    assert.ok((await setting.redis.strlen(key)) < 300);
  });

  test("of a sliding window with a thousand hits is some kilobytes", async () => {
    const given = options();
    const limiter = new RedisLimiter({ algorithm: "sliding_window", limit: 1_000, scale: "1d" }, given);
    for (let round = 0; round < 20; round++) await times(50, () => limiter.hit("a"));
    assert.equal((await limiter.peek("a")).allowed, false);
    const other = new RedisLimiter({ algorithm: "sliding_window", limit: 1_000, scale: "1d" }, given);
    assert.equal(await other.get("a"), 1_000);
    assert.equal((await other.hit("a")).allowed, false);
    assert.ok((await value(given)).text.length < 16_000);
  });
});

describe("resident states", () => {
  test("are bounded, and a key that was dropped is read again", async () => {
    const limiter = new RedisLimiter(window, options({ maxKeys: 10 }));
    for (let round = 1; round <= 3; round++) {
      for (let number = 0; number < 40; number++)
        assert.equal((await limiter.hit(`key ${number}`)).count, round);
      assert.equal(limiter.stats.keys, 10);
    }
    assert.equal(limiter.stats.evicted, 110);
    // Those under way stay, and those that come after them make room again.
    await times(50, (number) => limiter.hit(`key ${number}`));
    await limiter.hit("one more");
    assert.equal(await limiter.get("key 7"), 4);
  });

  test("of a key that is used are kept", async () => {
    const limiter = new RedisLimiter(window, options({ maxKeys: 10 }));
    await limiter.hit("hot");
    for (let number = 0; number < 100; number++) {
      await limiter.hit(`key ${number}`);
      if (number % 5 === 0) await limiter.hit("hot");
    }
    const { calls } = limiter.stats;
    await limiter.hit("hot");
    assert.equal(limiter.stats.calls, calls + 1);
  });
});

describe("the time to live", () => {
  const pttl = async (given) => setting.redis.pttl((await value(given)).key);
  /** The shortest time to live of a key, in milliseconds: it follows from the `timeout` of `options()`. */
  const least = 2 * 20_000 + 1_000;

  test("covers twice the longest that a state lasts, and is never shortened", async () => {
    const given = { ...options(), name: "ttl" };
    const hour = new RedisLimiter({ algorithm: "fix_window", limit: 9, scale: "1h" }, given);
    await hour.hit("a");
    const long = await pttl(given);
    assert.ok(long > 7_100_000 && long <= 7_200_000, `${long}`);
    const second = new RedisLimiter({ algorithm: "fix_window", limit: 9, scale: "1s" }, given);
    await second.hit("a");
    assert.ok((await pttl(given)) > 7_000_000);
    // One that needs less leaves what another set.
    const leaky = options();
    const slow = new RedisLimiter({ algorithm: "leaky_bucket", capacity: 9, leakRate: 1, per: "1h" }, leaky);
    await slow.hit("a");
    await new RedisLimiter({ algorithm: "leaky_bucket", capacity: 9, leakRate: 9 }, leaky).hit("a");
    assert.ok((await pttl(leaky)) > 60_000_000);
  });

  test("is at least that of the deadline, so that a token outlives it", async () => {
    const given = options();
    const sent = performance.now();
    await new RedisLimiter({ algorithm: "fix_window", limit: 9, scale: 1 }, given).hit("a");
    const left = await pttl(given);
    // At most this much time has passed; two clocks round to milliseconds.
    const passed = performance.now() - sent + 2;
    assert.ok(left <= least && left + passed >= least, `${left} after ${passed}`);
  });

  test("covers debt, before the caller gets its decision", async () => {
    const given = options();
    const limiter = new RedisLimiter({ algorithm: "leaky_bucket", capacity: 10, leakRate: 10 }, given);
    await limiter.hit("a");
    const short = await pttl(given);
    assert.ok(short <= least, `${short}`);
    await limiter.inc("a", 36_000);
    const long = await pttl(given);
    assert.ok(long > 7_000_000 && long <= 7_202_000, `${long}`);
  });
});

describe("local denials", () => {
  const bucket = { algorithm: "token_bucket", capacity: 3, refillRate: 1, per: "1h" };

  test("hold without a call, and tell a wait that is long enough", async () => {
    // By a clock that stands still: they hold for two seconds.
    using time = new ControlledTime(setting.redis);
    const limiter = new RedisLimiter(bucket, options({ client: time.client }));
    await limiter.hit("a", 3);
    const asked = await limiter.hit("a");
    assert.equal(asked.allowed, false);
    const { calls } = limiter.stats;
    const denied = await times(1_000, () => limiter.hit("a"));
    assert.equal(allowed(denied), 0);
    assert.equal(limiter.stats.calls, calls);
    assert.equal(limiter.stats.localDenials, 1_001);
    const [{ retryAfter, resetAfter, moreAfter, ...rest }] = denied;
    assert.deepEqual(rest, {
      allowed: false,
      count: 0,
      limit: 3,
      remaining: 0,
      policy: "token_bucket",
      violated: ["token_bucket"],
    });
    assert.ok(retryAfter > 3_599_000 && retryAfter <= 3_600_000 && resetAfter > retryAfter);
    assert.equal(moreAfter, retryAfter);
  });

  test("are not for a smaller cost, nor after what may allow a hit again", async () => {
    const limiter = new RedisLimiter(bucket, options());
    await limiter.hit("a", 2);
    assert.equal((await limiter.hit("a", 2)).allowed, false);
    assert.equal((await limiter.hit("a", 1)).allowed, true);
    assert.equal((await limiter.hit("a")).allowed, false);
    const [, hit] = await Promise.all([limiter.reset("a"), limiter.hit("a")]);
    assert.equal(hit.allowed, true);
    await limiter.hit("a", 2);
    const [, again] = await Promise.all([limiter.set("a", 2), limiter.hit("a")]);
    assert.equal(again.allowed, true);
    await limiter.hit("a", 3);
    await limiter.set("a", 0);
    assert.equal((await limiter.hit("a")).allowed, false);
    const [, refunded] = await Promise.all([limiter.inc("a", -1), limiter.hit("a")]);
    assert.equal(refunded.allowed, true);
  });

  test("are not for policies that count denied hits", async () => {
    const limiter = new RedisLimiter({ ...window, limit: 1, denied: "count" }, options());
    const decisions = await times(5, () => limiter.hit("a"));
    assert.equal((await limiter.hit("a")).count, 6);
    assert.equal(allowed(decisions), 1);
    assert.equal(limiter.stats.localDenials, 0);
  });
});

describe("tokens", () => {
  test("a command that arrives twice is counted once", async () => {
    const given = options({
      client: through(setting.redis, async (send) => {
        await send();
        return send();
      }),
    });
    const limiter = new RedisLimiter(window, given);
    for (let number = 1; number <= 100; number++) assert.equal((await limiter.hit("a")).count, number);
    // Also where the log was shortened.
    assert.match((await value(given)).text, /\|#/);
  });

  test("a command that arrives again after the log was shortened is not counted", async () => {
    const sent = [];
    const given = options({
      client: through(setting.redis, (send, { command, args }) => {
        if (command === "EVALSHA") sent.push(args);
        return send();
      }),
    });
    const limiter = new RedisLimiter(window, given);
    for (let number = 0; number < 60; number++) await limiter.hit("a");
    assert.ok(limiter.stats.bases > 0);
    const { text } = await value(given);
    let inBase = 0;
    for (const args of sent) {
      const [, reply] = await setting.redis.call("EVALSHA", ...args);
      if (reply?.replace(/^[*!]/, "").startsWith("=")) inBase++;
    }
    assert.ok(inBase > 20, `${inBase} were resent whose entries are in the base`);
    assert.equal((await value(given)).text.replace(/^.*!/, ""), text.replace(/^.*!/, ""));
    assert.equal(await new RedisLimiter(window, given).get("a"), 60);
  });
});
