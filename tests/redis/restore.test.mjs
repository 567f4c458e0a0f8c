// A Redis that loses its keys never goes back in time: whoever knows more than the process that restored a key adds it.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Redis } from "ioredis";
import { RedisLimiter } from "tollgate/redis";
import { startProxy } from "./lib/proxy.mjs";
import { allowed, through, times, withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const setting = withServer();
const { options } = setting;
/** So long that no window ends while a test runs. */
const window = { algorithm: "fix_window", limit: 100, scale: "365d" };

/** Processes that have hit a key in this order, so that each knows more than those before it. */
async function knowing(hits, given, policy = window) {
  const fleet = [];
  for (const each of hits) {
    const limiter = new RedisLimiter(policy, given);
    await times(each, () => limiter.hit("a"));
    fleet.push(limiter);
  }
  return fleet;
}

describe("after a loss", () => {
  test("the process that knows little returns first", async () => {
    const given = options();
    const [little, much] = await knowing([11, 89], given);
    await setting.lose();
    // What it admits before the other returns is lost to nobody.
    assert.equal((await little.hit("a")).count, 12);
    assert.equal((await much.peek("a")).allowed, false);
    assert.equal((await little.hit("a")).allowed, false);
    assert.equal(await much.get("a"), 101);
    assert.equal((await new RedisLimiter(window, given).hit("a")).allowed, false);
  });

  test("a process that knows nothing returns first", async () => {
    const given = options();
    const [much] = await knowing([60], given);
    await setting.lose();
    const stranger = new RedisLimiter(window, given);
    assert.equal(allowed(await times(5, () => stranger.hit("a"))), 5);
    assert.equal((await much.hit("a")).count, 66);
    assert.equal((await stranger.hit("a")).count, 67);
  });

  test("what was admitted meanwhile is charged on top, also if the log was shortened", async () => {
    const given = options();
    const [little, more, most] = await knowing([10, 10, 10], given);
    await setting.lose();
    for (let number = 11; number <= 50; number++) assert.equal((await little.hit("a")).count, number);
    assert.ok(little.stats.bases > 0);
    // 20 were known to it, and 40 were admitted.
    assert.equal((await more.hit("a")).count, 61);
    assert.equal((await most.hit("a")).count, 72);
    assert.equal((await little.hit("a")).count, 73);
    for (const limiter of [little, more, most]) assert.equal(await limiter.get("a"), 73);
  });

  test("what limiters with other policies admitted meanwhile is charged to each of them", async () => {
    const given = options();
    const named = (name, limit) => new RedisLimiter({ ...window, limit, name }, given);
    // The last two are two versions of one.
    const all = [named("api", 100), named("login", 20), named("login", 40)];
    for (const limiter of all) await times(5, () => limiter.hit("a"));
    for (const limiter of all) await limiter.peek("a");
    await setting.lose();
    const strangers = [named("login", 40), named("api", 100), named("search", 10)];
    for (const stranger of strangers) await times(3, () => stranger.hit("a"));
    // No more than what all strangers admitted, and at least what each did.
    const counts = [];
    for (const limiter of [...all, ...strangers]) counts.push(await limiter.get("a"));
    const [api, login, later, ...others] = counts;
    assert.ok(api >= 8 && api <= 14, `${api}`);
    assert.ok(login >= 13 && login <= 19, `${login}`);
    assert.equal(login, later);
    assert.deepEqual(others.slice(0, 2), [login, api]);
    assert.ok(others[2] >= 3 && others[2] <= 9, `${others[2]}`);
  });

  test("three losses in a row, with processes that stay quiet", async () => {
    const given = options();
    const fleet = await knowing([5, 5, 5, 5, 5], given);
    let expected = 0;
    for (let loss = 0; loss < 3; loss++) {
      await setting.lose();
      // The same two return, and not the one who knows most.
      expected = (await fleet[loss].hit("a")).count;
      expected = (await fleet[loss + 1].hit("a")).count;
    }
    const { count } = await fleet[4].hit("a");
    // 25 before the losses, two after each of them, and this one.
    assert.equal(count, 25 + 6 + 1);
    assert.ok(count > expected);
    for (const limiter of fleet) assert.equal(await limiter.get("a"), count);
  });

  test("whatever the order of losses, returns and hits, no hit that a process knows of is forgotten", async () => {
    using time = new ControlledTime(setting.redis);
    for (let seed = 1; seed <= 40; seed++) {
      const given = options({ client: time.client });
      let state = seed;
      const random = (below) => {
        state = (state * 48_271) % 2_147_483_647;
        return state % below;
      };
      const fleet = Array.from({ length: 4 }, () => new RedisLimiter({ ...window, limit: 10_000 }, given));
      let admitted = 0;
      for (let step = 0; step < 40; step++) {
        time.now += 1 + random(50);
        if (random(12) === 0) await setting.redis.flushall();
        const hits = 1 + random(3);
        admitted += allowed(await times(hits, () => fleet[random(4)].hit("a")));
      }
      // Everyone returns once.
      for (const limiter of fleet) await limiter.hit("a");
      const count = await fleet[0].get("a");
      assert.ok(count >= admitted + 4, `seed ${seed}: ${count} of ${admitted + 4}`);
      for (const limiter of fleet) assert.equal(await limiter.get("a"), count, `seed ${seed}`);
    }
  });

  test("a fleet of which one hits after each loss admits no more than was lost to all", async () => {
    const given = options();
    const fleet = await knowing([20, 20, 20, 20], given);
    let admitted = 80;
    for (let round = 0; round < 40; round++) {
      if (round % 4 === 0) await setting.lose();
      const decisions = await times(4, (number) => fleet[number].hit("a"));
      admitted += allowed(decisions);
    }
    // All return after each loss, so only the first message of each can be ahead of who knows more.
    assert.ok(admitted <= 100 + 10 * 4, `${admitted} were admitted`);
    assert.equal((await fleet[0].hit("a")).allowed, false);
  });

  test("under several policies each is charged its own", async () => {
    const policies = [
      { ...window, name: "requests" },
      { algorithm: "token_bucket", capacity: 10_000, refillRate: 1, per: "365d", name: "tokens" },
    ];
    const given = options();
    const fleet = Array.from({ length: 2 }, () => new RedisLimiter(policies, given));
    await fleet[0].hit("a", { tokens: 100 });
    await fleet[1].hit("a", { tokens: 1_000 });
    await setting.lose();
    await fleet[0].hit("a", { tokens: 7 });
    await fleet[1].hit("a", { tokens: 20 });
    assert.equal(await fleet[0].get("a", "requests"), 4);
    assert.equal(await fleet[0].get("a", "tokens"), 10_000 - 1_127);
  });

  test("a reset after the loss ends what was before it", async () => {
    const given = options();
    const [little, much] = await knowing([5, 50], given);
    await setting.lose();
    await little.hit("a");
    await little.reset("a");
    assert.equal((await much.hit("a")).count, 1);
  });

  test("a client that sends what it lost again restores and adds once", async () => {
    const given = options();
    const twice = through(setting.redis, async (send) => {
      await send();
      return send();
    });
    const [little, much] = [
      new RedisLimiter(window, { ...given, client: twice }),
      new RedisLimiter(window, { ...given, client: twice }),
    ];
    await times(10, () => little.hit("a"));
    await times(10, () => much.hit("a"));
    await setting.lose();
    assert.equal((await little.hit("a")).count, 11);
    assert.equal((await much.hit("a")).count, 22);
    assert.equal(await little.get("a"), 22);
  });

  test("with restore off, each takes what is there", async () => {
    const given = options({ restore: false });
    const [little, much] = await knowing([5, 50], given);
    await setting.lose();
    assert.equal((await little.hit("a")).count, 1);
    assert.equal((await much.hit("a")).count, 2);
  });
});

describe("many keys in one call", () => {
  test("are counted each by itself, and cut replies count nothing twice", async () => {
    const proxy = await startProxy(setting.server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 1 });
    client.on("error", () => {});
    try {
      const given = options({ client });
      const limiter = new RedisLimiter({ ...window, limit: 10_000 }, given);
      const other = new RedisLimiter({ ...window, limit: 10_000 }, { ...given, client: setting.redis });
      const keys = Array.from({ length: 40 }, (_, number) => `key ${number}`);
      for (let round = 1; round <= 30; round++) {
        if (round > 1) proxy.cutNext();
        const decisions = await Promise.all(keys.map((key, number) => limiter.hit(key, 1 + (number % 3))));
        for (const [number, { count }] of decisions.entries())
          assert.equal(count, round * (1 + (number % 3)), `round ${round}, ${keys[number]}`);
        const counts = await Promise.all(keys.map((key) => other.get(key)));
        assert.deepEqual(
          counts,
          keys.map((_, number) => round * (1 + (number % 3))),
        );
      }
      assert.ok(proxy.cuts >= 29);
    } finally {
      client.disconnect();
      await proxy.stop();
    }
  });

  test("take one call for up to 32 keys of a tick", async () => {
    const limiter = new RedisLimiter(window, options());
    await limiter.hit("first");
    const { calls } = limiter.stats;
    await times(64, (number) => limiter.hit(`key ${number}`));
    assert.equal(limiter.stats.calls, calls + 2);
  });

  test("wait for others only while a call is under way", async () => {
    let held = Promise.resolve();
    let turns = 0;
    const sent = [];
    const client = through(setting.redis, async (send, { args }) => {
      sent.push({ keys: Number(args[1]), turns });
      await held;
      return send();
    });
    const limiter = new RedisLimiter(window, options({ client }));
    await limiter.hit("first");
    sent.length = 0;
    let release;
    held = new Promise((resolve) => {
      release = resolve;
    });
    const hits = [];
    const callback = (key) => hits.push(limiter.hit(key));
    setImmediate(() => callback("a"));
    // After the callback, and the microtasks and ticks that follow it.
    setImmediate(() => turns++);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(sent, [{ keys: 1, turns: 0 }]);
    for (const key of ["b", "c", "d"]) setImmediate(() => callback(key));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.deepEqual(sent.slice(1), [{ keys: 3, turns: 1 }]);
    release();
    assert.deepEqual(
      (await Promise.all(hits)).map(({ count }) => count),
      [1, 1, 1, 1],
    );
  });

  test("without memory none of them is counted", async () => {
    const limiter = new RedisLimiter(window, options());
    const hits = () =>
      Promise.allSettled(Array.from({ length: 20 }, (_, number) => limiter.hit(`${number}`)));
    await hits();
    await setting.redis.config("SET", "maxmemory", "1");
    try {
      for (const { reason } of await hits()) assert.match(reason.message, /OOM/);
    } finally {
      await setting.redis.config("SET", "maxmemory", "0");
    }
    for (const { value } of await hits()) assert.equal(value.count, 2);
  });

  test("of a client that says nothing of a Cluster are sent by slot once a node asks for it", async () => {
    let asked = 0;
    const client = through(setting.redis, async (send, { args }) => {
      asked++;
      if (Number(args[1]) > 1) throw new Error("CROSSSLOT Keys in request don't hash to the same slot");
      return send();
    });
    const limiter = new RedisLimiter(window, options({ client }));
    const decisions = await times(10, (number) => limiter.hit(`key ${number}`));
    assert.equal(allowed(decisions), 10);
    const before = asked;
    assert.equal(allowed(await times(10, (number) => limiter.hit(`key ${number}`))), 10);
    assert.equal(asked, before + 10);
    // Keys with the same tag are in the same slot, which this server denies.
    await times(3, (number) => assert.rejects(limiter.hit(`{tag} ${number}`), { code: "unanswered" }));
  });
});
