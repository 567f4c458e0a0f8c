// What a limiter does when Redis does not do what it should.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { RedisLimiter } from "tollgate/redis";
import { connect, freePort, startServer } from "./lib/server.mjs";
import { allowed, through, times, withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";
import { stamp } from "./lib/value.mjs";

const setting = withServer();
const { options, value } = setting;
/** So long that no window ends while a test runs. */
const window = { algorithm: "fix_window", limit: 10, scale: "365d" };

/** Waits until `work` is true, as long as it takes a client to connect again. */
async function until(work) {
  while (!(await work())) await new Promise((resolve) => setImmediate(resolve));
}

describe("a Redis that is down", () => {
  test("onError or a fallback decides at once, and no queue grows", {
    timeout: 120_000,
  }, async () => {
    const client = connect(await freePort(), { retryStrategy: () => 5, maxRetriesPerRequest: null });
    try {
      const given = options({ client, timeout: 100 });
      const throwing = new RedisLimiter(window, given);
      await times(1_000, (number) => assert.rejects(throwing.hit(`${number}`), { code: "unanswered" }));
      await times(1_000, (number) => assert.rejects(throwing.hit(`${number}`), { code: "unanswered" }));
      const allowing = new RedisLimiter(window, { ...given, onError: "allow" });
      assert.deepEqual(await allowing.hit("a"), {
        allowed: true,
        count: 0,
        limit: 10,
        remaining: 0,
        retryAfter: 0,
        resetAfter: 0,
        moreAfter: 0,
        policy: "fix_window",
        violated: [],
        reason: "error",
      });
      await assert.rejects(allowing.inc("a"), { code: "unanswered" });
      const denying = new RedisLimiter(window, { ...given, onError: "deny" });
      const denied = await denying.peek("a");
      assert.deepEqual([denied.allowed, denied.retryAfter], [false, 1_000]);
      assert.equal(denying.stats.decidedWithout, 1);
      assert.ok(client.offlineQueue === undefined || client.offlineQueue.length <= 1_100);
    } finally {
      client.disconnect();
    }
  });

  test("a fallback decides with a share of the limit, or as it is", async () => {
    const client = { send: () => Promise.reject(new Error("connect ECONNREFUSED")) };
    const shared = new RedisLimiter(window, options({ client, fallback: { share: 0.25 } }));
    assert.equal(allowed(await times(10, () => shared.hit("a"))), 2);
    assert.equal((await shared.peek("b")).limit, 2);
    const own = new RateLimiter({ algorithm: "token_bucket", capacity: 3, refillRate: 1, per: "1d" });
    const other = new RedisLimiter(window, options({ client, fallback: own, onError: "throw" }));
    assert.equal(allowed(await times(10, () => other.hit("a"))), 3);
    assert.equal(own.get("a"), 0);
    await assert.rejects(other.get("a"), { code: "unanswered", message: /ECONNREFUSED/ });
  });

  test("a fallback that throws is an error of the call", async () => {
    const client = { send: () => Promise.reject(new Error("down")) };
    const broken = {
      hit: () => {
        throw new TypeError("no");
      },
      peek: () => Promise.reject(new TypeError("no")),
    };
    const limiter = new RedisLimiter(window, options({ client, fallback: broken }));
    await assert.rejects(limiter.hit("a"), TypeError);
    await assert.rejects(limiter.peek("a"), TypeError);
  });

  test("works again when it is back, without a restart", async () => {
    const port = await freePort();
    const client = connect(port, { retryStrategy: () => 5 });
    let server;
    try {
      const limiter = new RedisLimiter(window, options({ client, onError: "deny", timeout: 500 }));
      assert.equal((await limiter.hit("a")).reason, "error");
      server = await startServer({ port });
      await until(async () => (await limiter.hit("a")).reason === undefined);
      assert.equal((await limiter.hit("a")).count, 2);
      // And again, after it was connected.
      await server.stop();
      await until(async () => (await limiter.hit("a")).reason === "error");
      server = await startServer({ port });
      await until(async () => (await limiter.peek("a")).reason === undefined);
      // What the limiter knew was told to the empty server.
      assert.equal(await limiter.get("a"), 2);
    } finally {
      client.disconnect();
      await server?.stop();
    }
  });

  test("a client that never responds is called only now and then", async () => {
    let asked = 0;
    const client = {
      send() {
        asked++;
        return new Promise(() => {});
      },
    };
    const limiter = new RedisLimiter(window, options({ client, timeout: 5, onError: "allow" }));
    for (let round = 0; round < 4; round++) {
      const decisions = times(200, (number) => limiter.hit(`${number}`));
      await new Promise((resolve) => setImmediate(resolve));
      await decisions;
    }
    // One round, after which no more are sent; and a probe.
    assert.equal(asked, Math.ceil(200 / 32) + 1);
    assert.equal(limiter.stats.decidedWithout, 800);
  });
});

describe("a Redis that rejects commands", () => {
  test("without memory: an error, and nothing was counted", async () => {
    const limiter = new RedisLimiter(window, options());
    await limiter.hit("a");
    await setting.redis.config("SET", "maxmemory", "1");
    try {
      await assert.rejects(limiter.hit("a"), { code: "unanswered", message: /OOM/ });
      await assert.rejects(limiter.hit("new"), { code: "unanswered", message: /OOM/ });
    } finally {
      await setting.redis.config("SET", "maxmemory", "0");
    }
    assert.equal((await limiter.hit("a")).count, 2);
    assert.equal((await limiter.hit("new")).count, 1);
  });

  for (const [policy, admitted] of [
    ["noeviction", 5],
    ["volatile-lru", 10],
  ])
    test(`full under ${policy}: ${admitted} of 5 are admitted`, async () => {
      const own = options();
      const admit = async () => {
        // As another process, which has nothing in memory.
        const limiter = new RedisLimiter({ algorithm: "fix_window", limit: 5, scale: "1d" }, own);
        const decisions = [];
        for (let hit = 0; hit < 7; hit += 1) decisions.push(await limiter.hit("full"));
        return decisions.filter(({ allowed }) => allowed).length;
      };
      const before = await admit();
      await setting.redis.config("SET", "maxmemory-policy", policy);
      await setting.redis.config("SET", "maxmemory", "1");
      // A write makes Redis evict what it may.
      await setting.redis.set("other", "1").catch(() => {});
      await setting.redis.config("SET", "maxmemory", "0");
      await setting.redis.config("SET", "maxmemory-policy", "noeviction");
      assert.equal(before + (await admit()), admitted);
    });

  test("a replica: an error, and nothing was counted", async () => {
    const limiter = new RedisLimiter(window, options());
    await limiter.hit("a");
    await setting.redis.replicaof("127.0.0.1", await freePort());
    try {
      await assert.rejects(limiter.hit("a"), { code: "unanswered", message: /READONLY/ });
      assert.equal(await limiter.get("a"), 1);
    } finally {
      await setting.redis.replicaof("NO", "ONE");
    }
    assert.equal((await limiter.hit("a")).count, 2);
  });

  test("one that is loading, or says anything else", async () => {
    for (const message of ["LOADING Redis is loading the dataset in memory", "NOPERM no permission", "odd"]) {
      const client = { send: () => Promise.reject(new Error(message)) };
      const limiter = new RedisLimiter(window, options({ client }));
      await assert.rejects(
        limiter.hit("a"),
        (error) => error.code === "unanswered" && error.cause.message === message,
      );
    }
    for (const reply of [undefined, null, 7, "", "OK", "+12", "#1800000000000", ["+"], {}]) {
      const limiter = new RedisLimiter(window, options({ client: { send: async () => reply } }));
      await assert.rejects(limiter.hit("a"), { code: "unanswered", message: /the reply of the script/ });
    }
    const throwing = {
      send: () => {
        throw new Error("closed");
      },
    };
    await assert.rejects(new RedisLimiter(window, options({ client: throwing })).hit("a"), {
      code: "unanswered",
    });
  });

  test("a Redis that lost the script gets it again", async () => {
    const limiter = new RedisLimiter(window, options());
    for (let number = 1; number <= 5; number++) {
      await setting.redis.script("FLUSH");
      assert.equal((await limiter.hit("a")).count, number);
    }
    assert.equal(limiter.stats.scriptLoads, 5);
  });

  test("a paused Redis: no response in time, and nothing is counted later", async () => {
    const server = await startServer();
    const client = connect(server.port);
    try {
      let deadline = 0;
      const noting = through(client, (send, { args }) => {
        [deadline] = args[3].split(" ").map(Number);
        return send();
      });
      const given = options({ client: noting, timeout: 60 });
      const limiter = new RedisLimiter(window, given);
      while ((await limiter.hit("a").catch(() => undefined)) === undefined);
      const patient = new RedisLimiter(window, { ...given, client, timeout: "20s" });
      const counted = await patient.get("a");
      server.signal("SIGSTOP");
      await assert.rejects(limiter.hit("a"), { code: "unanswered", message: /no reply within 60 ms/ });
      // The deadline that was sent is later than the caller's, by as long as the last reply took.
      await until(() => Date.now() > deadline);
      server.signal("SIGCONT");
      await client.ping();
      assert.equal(await patient.get("a"), counted);
    } finally {
      client.disconnect();
      await server.stop();
    }
  });
});

describe("deadlines", () => {
  test("a command that arrives after its caller gave up is not appended", async () => {
    using time = new ControlledTime(setting.redis);
    let held;
    const client = {
      send(key, args) {
        if (held === undefined) return time.client.send(key, args);
        return new Promise((resolve) => held.push(() => time.client.send(key, args).then(resolve)));
      },
    };
    const given = options({ client, timeout: 50 });
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("a");
    held = [];
    const late = limiter.hit("a");
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(held.length, 1);
    await assert.rejects(late, { code: "unanswered", message: /no reply within 50 ms/ });
    time.now += 1_000;
    const [send] = held;
    held = undefined;
    await send();
    assert.equal(await limiter.get("a"), 1);
  });

  test("a clock of Redis that steps ahead or back only costs another call", async () => {
    using time = new ControlledTime(setting.redis);
    const limiter = new RedisLimiter(window, options({ client: time.client, timeout: 50 }));
    await limiter.hit("a");
    for (const step of [400_000, -400_000, 3_600_000]) {
      time.step(step);
      const { calls } = limiter.stats;
      assert.equal((await limiter.hit("a")).allowed, true);
      assert.ok(limiter.stats.calls - calls <= 2);
    }
    assert.equal(await limiter.get("a"), 4);
  });
});

describe("late replies", () => {
  test("are dropped, and the next reply shows what was counted", async () => {
    const slow = [];
    let isSlow = false;
    using time = new ControlledTime(setting.redis);
    const client = {
      async send(key, args) {
        const reply = await time.client.send(key, args);
        if (!isSlow) return reply;
        return new Promise((resolve) => slow.push(() => resolve(reply)));
      },
    };
    const limiter = new RedisLimiter(window, options({ client, timeout: 50 }));
    assert.equal((await limiter.hit("a")).count, 1);
    isSlow = true;
    const late = limiter.hit("a");
    await until(() => slow.length > 0);
    await assert.rejects(late, { code: "unanswered", message: /no reply within 50 ms/ });
    isSlow = false;
    assert.equal((await limiter.hit("a")).count, 3);
    for (const resolve of slow) resolve();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await limiter.hit("a")).count, 4);
  });
});

describe("a Redis that lost everything", () => {
  test("gets the states that the limiters know, once", async () => {
    const given = options();
    const fleet = Array.from({ length: 3 }, () => new RedisLimiter(window, given));
    for (let round = 0; round < 2; round++) await times(3, (who) => fleet[who].hit("a"));
    await times(3, (who) => fleet[who].peek("a"));
    await setting.lose();
    const decisions = await times(12, (number) => fleet[number % 3].hit("a"));
    assert.equal(allowed(decisions), 4);
    const restored = fleet.reduce((sum, { stats }) => sum + stats.restored, 0);
    assert.equal(restored, 1);
  });

  test("gets no states if restore is off, or they have ended", async () => {
    const given = options({ restore: false });
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("a", 9);
    await setting.lose();
    assert.equal((await limiter.hit("a")).count, 1);
    // Nor by the way, when a shorter value is proposed.
    await limiter.reset("a");
    while ((await value(given)).text.length < 130) await limiter.inc("a");
    await setting.lose();
    assert.equal(await limiter.inc("a"), 1);
    using time = new ControlledTime(setting.redis);
    const other = new RedisLimiter({ ...window, scale: "1s" }, options({ client: time.client }));
    await other.hit("a", 9);
    await setting.lose();
    time.now += 1_000;
    assert.equal((await other.hit("a")).count, 1);
    assert.equal(limiter.stats.restored + other.stats.restored, 0);
  });

  test("a key that was deleted comes back, and one that was reset does not", async () => {
    const given = options();
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("a", 4);
    await setting.redis.del((await value(given)).key);
    assert.equal((await limiter.hit("a")).count, 5);
    await limiter.reset("a");
    await setting.lose();
    assert.equal((await limiter.hit("a")).count, 1);
  });
});

describe("a key that holds something else", () => {
  const [now, mark] = [stamp(1_800_000_000_000), "!process01"];
  const start = `b${now}0.10.1.31536000000|`;
  /** Values that no version ever wrote. */
  const garbage = {
    "a text": "hello world",
    "what is not UTF-8": [97, 0, 255, 254],
    "half an entry": `${start}${now}h1!12345`,
    "no entry": `b${"x".repeat(40)}`,
    "no policies": `b${now}|${now}h1${mark}`,
    "policies that are none": `b${now}0.0.0.0|${now}h1${mark}`,
    "an entry under policies that are none": `${start}${now}@0.0.0.0;h1${mark}`,
    "a number of no policies": `${start}${now}$1h1${mark}`,
    "a number out of order": `${start}${now}{0.5.1.31536000000}2h1${mark}`,
    "a line end": `${start}${now}h1${mark}\n`,
    "a line end after which there is more": `${start}${now}h1${mark}\n=${start}${now}h1${mark}`,
    "a base without states": `${start}#${now}`,
    "a base that ends early": `${start}#${now}1,1|1,1|~process01`,
    "a base with other states": `${start}#${now}1,1|1,1,1,1,1;5|${mark}`,
    "a base without lines": `${start}#${now}|1,1|${mark}`,
    "a number too large": `${start}${now}h99999999999999999999999${mark}`,
    "more hits than any entry has": `${start}${now}h1*99999999${mark}`,
    "a policy that is not there": `${start}${now}i1:7${mark}`,
  };
  /** Values of other versions. */
  const versions = {
    "a later format": `c${start.slice(1)}${now}h1${mark}`,
    "an earlier format": `a${start.slice(1)}${now}h1${mark}`,
    "an algorithm of later": `b${now}99.10.1.86400000|${now}h1${mark}`,
    "an operation of later": `${start}${now}z9${mark}`,
    "a field of later": `${start}${now}h1?5${mark}`,
  };

  const check = async (held, code) => {
    const given = options();
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("fine");
    const { key: fine } = await value(given);
    const key = fine.replace(/fine$/, "bad");
    const content = Buffer.from(held);
    await setting.redis.set(key, content);
    const operations = [() => limiter.hit("bad"), () => limiter.get("bad"), () => limiter.reset("bad")];
    for (const operation of [...operations, ...operations])
      await assert.rejects(operation(), (error) => {
        assert.equal(error.code, code, error.message);
        assert.ok(error.message.includes(`"${key}"`), error.message);
        return true;
      });
    // It is as it was, but for the one entry of a caller who could not know.
    const after = await setting.redis.getBuffer(key);
    assert.ok(after.subarray(0, content.length).equals(content) && after.length < content.length + 70);
    const deny = new RedisLimiter(window, { ...given, onError: "deny" });
    assert.equal((await deny.hit("bad")).reason, "error");
    assert.equal((await limiter.hit("fine")).count, 2);
    await setting.redis.del(key);
    assert.equal((await limiter.hit("bad")).count, 1);
    assert.equal((await limiter.hit("bad")).count, 2);
  };

  for (const [name, held] of Object.entries(garbage)) test(name, () => check(held, "invalid_state"));
  for (const [name, held] of Object.entries(versions)) test(name, () => check(held, "unsupported_version"));

  test("of another format is left as it is", async () => {
    const given = options();
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("fine");
    const key = (await value(given)).key.replace(/fine$/, "bad");
    await setting.redis.set(key, `a${now}…`);
    await assert.rejects(limiter.hit("bad"), { code: "unsupported_version" });
    assert.equal(await setting.redis.get(key), `a${now}…`);
    assert.equal(await setting.redis.pttl(key), -1);
  });

  test("fails alone, in a call with other keys", async () => {
    const given = options();
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("fine");
    const { key: fine } = await value(given);
    const held = Object.entries({ ...garbage, ...versions });
    for (const [name, content] of held)
      await setting.redis.set(fine.replace(/fine$/, name), Buffer.from(content));
    await setting.redis.lpush(fine.replace(/fine$/, "list"), "item");
    const keys = ["fine", ...held.map(([name]) => name), "list", "new", "also fine"];
    for (let round = 1; round <= 3; round++) {
      const { calls } = limiter.stats;
      const results = await Promise.allSettled(keys.map((key) => limiter.hit(key)));
      // An entry goes to a value only after it could be read.
      assert.ok(limiter.stats.calls <= calls + 2);
      for (const [index, { value: decision, reason }] of results.entries()) {
        const key = keys[index];
        if (["fine", "new", "also fine"].includes(key))
          assert.equal(decision?.count, key === "fine" ? round + 1 : round, `${key}: ${reason}`);
        else {
          assert.equal(reason?.code, key in versions ? "unsupported_version" : "invalid_state", key);
          assert.ok(reason.message.includes(`"${fine.replace(/fine$/, key)}"`), reason.message);
        }
      }
    }
  });

  test("a list", async () => {
    const given = options();
    const limiter = new RedisLimiter(window, given);
    await limiter.hit("fine");
    const key = (await value(given)).key.replace(/fine$/, "bad");
    await setting.redis.lpush(key, "item");
    for (const operation of [() => limiter.hit("bad"), () => limiter.reset("bad"), () => limiter.hit("bad")])
      await assert.rejects(operation(), (error) => {
        assert.equal(error.code, "invalid_state");
        assert.ok(error.message.includes(`"${key}"`), error.message);
        return true;
      });
    assert.deepEqual(await setting.redis.lrange(key, 0, -1), ["item"]);
    assert.equal(await setting.redis.pttl(key), -1);
    assert.equal((await limiter.hit("fine")).count, 2);
  });
});
