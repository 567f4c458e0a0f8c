// Every client that is accepted, and those that are not.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Redis as Ioredis } from "ioredis";
import { Redis as Iovalkey } from "iovalkey";
import { createClient, createClientPool } from "redis";
import { RedisLimiter } from "tollgate/redis";
import { allowed, through, times, withServer } from "./lib/setting.mjs";

const setting = withServer();
const policy = { algorithm: "sliding_window", limit: 20, scale: "1d" };

const url = () => `redis://127.0.0.1:${setting.server.port}`;

const clients = {
  ioredis: () => {
    const client = new Ioredis(url());
    return [client, () => client.disconnect()];
  },
  "ioredis with a pipeline of its own": () => {
    const client = new Ioredis(url(), { enableAutoPipelining: true });
    return [client, () => client.disconnect()];
  },
  "ioredis, a prefix and bytes": () => {
    const client = new Ioredis(url(), { keyPrefix: "of-the-client:", stringNumbers: true });
    return [client, () => client.disconnect()];
  },
  iovalkey: () => {
    const client = new Iovalkey(url());
    return [client, () => client.disconnect()];
  },
  "several connections of ioredis by turns": () => {
    const some = Array.from({ length: 3 }, () => new Ioredis(url()));
    let next = 0;
    const send = (_key, [command, ...args]) => some[next++ % some.length].call(command, ...args);
    return [
      { send },
      () => {
        for (const client of some) client.disconnect();
      },
    ];
  },
  "ioredis, each command in a MULTI": () => {
    const client = new Ioredis(url());
    const send = async (_key, [command, ...args]) => {
      const [[error, reply]] = await client
        .multi()
        .call(command, ...args)
        .exec();
      if (error) throw error;
      return reply;
    };
    return [{ send }, () => client.disconnect()];
  },
  "redis, RESP 2": async () => {
    const client = await createClient({ url: url(), RESP: 2 }).connect();
    return [client, () => client.destroy()];
  },
  "redis, RESP 3": async () => {
    const client = await createClient({ url: url(), RESP: 3 }).connect();
    return [client, () => client.destroy()];
  },
  "redis, a pool": async () => {
    const pool = await createClientPool({ url: url() }, { minimum: 2, maximum: 4 }).connect();
    return [pool, () => pool.destroy()];
  },
  "a function that sends": () => [through(setting.redis, (send) => send()), () => {}],
  "a function that returns bytes": () => [
    { send: (_key, [command, ...args]) => setting.redis.callBuffer(command, ...args) },
    () => {},
  ],
};

for (const [name, make] of Object.entries(clients)) {
  test(name, async () => {
    const [client, close] = await make();
    try {
      const given = setting.options({ client });
      const fleet = [new RedisLimiter(policy, given), new RedisLimiter(policy, given)];
      const decisions = await times(30, (number) => fleet[number % 2].hit("a"));
      assert.equal(allowed(decisions), 20);
      const keys = await times(50, (number) => fleet[0].hit(`key ${number}`));
      assert.equal(allowed(keys), 50);
      assert.equal(await fleet[1].get("key 7"), 1);
      // Messages of several sizes overtake each other where there are several connections.
      const many = await times(400, async (number) => {
        for (let wait = number % 5; wait > 0; wait--) await new Promise((resolve) => setImmediate(resolve));
        return fleet[number % 2].hit(`of many ${number % 10}`);
      });
      assert.equal(allowed(many), 10 * 20);
      await setting.redis.script("FLUSH");
      assert.equal(await fleet[1].inc("b", 5), 5);
      assert.equal(fleet[1].stats.unanswered, 0);
    } finally {
      close();
    }
  });
}

describe("errors", () => {
  const make = (client) => () => new RedisLimiter(policy, { client });
  const accepts = /client.*(ioredis, iovalkey or redis).*send\(key, args\)/;

  test("an invalid client", () => {
    const callbacks = { evalsha() {}, eval() {}, send_command() {} };
    for (const client of [undefined, null, 7, "redis://127.0.0.1", {}, [], () => {}, new Map(), callbacks])
      assert.throws(make(client), { code: "invalid_option", message: accepts });
  });

  test("a client of redis that was not connected says so", async () => {
    const limiter = new RedisLimiter(policy, { client: createClient({ url: url() }) });
    await assert.rejects(limiter.hit("a"), { code: "unanswered", message: /await client\.connect\(\)/ });
  });

  test("options", () => {
    const client = setting.redis;
    for (const [option, message] of [
      [{ timeout: 0 }, /timeout: 0 is not a duration of at most 30000 ms/],
      [{ timeout: "1m" }, /timeout: "1m" is not/],
      [{ onError: "ignore" }, /onError: "ignore" is not "throw" or "allow" or "deny"/],
      [{ maxKeys: 0 }, /maxKeys: 0 is not an integer from 1 to 16000000/],
      [{ prefix: 7 }, /prefix: 7 is not a string/],
      [{ prefix: "\ud800" }, /prefix/],
      [{ name: "a:b" }, /name: "a:b" is not 1 to 64 letters/],
      [{ restore: 1 }, /restore: 1 is not true or false/],
      [{ fallback: {} }, /fallback: an object is not a limiter such as/],
      [{ fallback: { share: 1.5 } }, /fallback: 1\.5 is not a limiter/],
      [{ fallback: null }, /fallback: null is not/],
      [{ timeOut: 5 }, /options: "timeOut" is not an option; use one of client, prefix/],
    ])
      assert.throws(() => new RedisLimiter(policy, { client, ...option }), {
        code: "invalid_option",
        message,
      });
    assert.throws(() => new RedisLimiter(policy), { code: "invalid_option" });
  });

  test("policies, keys, costs and counts", async () => {
    const given = setting.options();
    const tooLong = { algorithm: "sliding_window", limit: 1_001, scale: "1s" };
    assert.throws(() => new RedisLimiter(tooLong, given), {
      code: "invalid_policy",
      message: /at most 1000/,
    });
    assert.throws(() => new RedisLimiter([], given), { code: "invalid_policy" });
    const bucket = { algorithm: "token_bucket", capacity: 9, refillRate: 1 };
    const limiter = new RedisLimiter([policy, bucket], given);
    for (const key of ["", 7, 7n, null, undefined, {}, "\udc00", "x".repeat(1_025), "€".repeat(342)])
      await assert.rejects(limiter.hit(key), { code: "invalid_key" });
    for (const cost of [-1, 1.5, Number.NaN, 2 ** 53, "1", null, {}, [], 1n]) {
      await assert.rejects(limiter.hit("a", cost), { code: "invalid_cost" });
      await assert.rejects(limiter.peek("a", cost), { code: "invalid_cost" });
      // A negative cost gives back.
      if (cost !== -1) await assert.rejects(limiter.inc("a", cost, "token_bucket"), { code: "invalid_cost" });
      await assert.rejects(limiter.set("a", cost, "token_bucket"), { code: "invalid_count" });
    }
    await assert.rejects(limiter.set("a", 10, "token_bucket"), {
      code: "invalid_count",
      message: "count: 10 is not an integer from 0 to 9",
    });
    await assert.rejects(limiter.get("a"), { code: "unknown_policy" });
    await assert.rejects(limiter.get("a", "other"), { code: "unknown_policy" });
    assert.equal(await setting.redis.exists((await setting.value(given)).key ?? ""), 0);
  });

  test("a limiter that was disposed of", async () => {
    const limiter = new RedisLimiter(policy, setting.options());
    await limiter.hit("a");
    limiter[Symbol.dispose]();
    limiter[Symbol.dispose]();
    await assert.rejects(limiter.hit("a"), { code: "disposed" });
  });
});

test("two limiters without a name under other policies share their keys, which is warned of once", (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  const [client, other] = [1, 2].map(() => ({ send: () => Promise.reject(new Error("down")) }));
  const policy = (limit) => ({ algorithm: "fix_window", limit, scale: "1m" });
  // Not of the same policies, of names, of prefixes, of clients, or of the plans of one limiter.
  for (const options of [{ client }, { client }, { client: other }])
    new RedisLimiter(policy(1), options).sibling(policy(7));
  new RedisLimiter(policy(2), { client, name: "login" });
  new RedisLimiter(policy(2), { client, prefix: "login:" });
  assert.equal(warn.mock.callCount(), 0);
  new RedisLimiter(policy(2), { client });
  new RedisLimiter(policy(3), { client });
  assert.equal(warn.mock.callCount(), 1);
  assert.match(warn.mock.calls[0].arguments[0], /^tollgate: two RedisLimiters without a name share the keys/);
});
