// `history` keeps the last denials of a key in Redis, once a second at most; without it nothing is written.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hitAll, RedisLimiter } from "tollgate/redis";
import { through, withServer } from "./lib/setting.mjs";

const setting = withServer();
const policies = [
  { algorithm: "fix_window", limit: 2, scale: "day", name: "daily" },
  { algorithm: "fix_window", limit: 9, scale: "week", name: "weekly" },
];

/** Returns the denials that are kept of a key, the last first. */
async function kept({ prefix, name = "default" }, key) {
  const items = await setting.redis.lrange(`${prefix}history:${name}:${key}`, 0, -1);
  return items.map((item) => JSON.parse(item));
}

test("denials of hits, reservations and several keys are kept, also those that no call was sent for", async () => {
  const options = setting.options({ history: 100 });
  const limiter = new RedisLimiter(policies, options);
  await limiter.hit("a", 2);
  for (let count = 0; count < 4; count += 1) await limiter.hit("a", { daily: 1, weekly: 0 });
  await limiter.hit("b", 2);
  await limiter.reserve("b", 3);
  await limiter.hit("c", 2);
  await hitAll([
    { limiter, key: "c" },
    { limiter, key: "d" },
  ]);
  await limiter.peek("d", 99);
  const before = Date.now();
  limiter[Symbol.dispose]();
  const [{ at, retryAfter, ...item }, first, ...others] = await kept(options, "a");
  // The first is written at once, and the rest of that second together.
  assert.deepEqual([first.times, others], [1, []]);
  assert.ok(Math.abs(at - before) < 60_000);
  assert.ok(retryAfter > 0 && retryAfter <= 86_400_000);
  assert.deepEqual(item, {
    times: 3,
    operation: "hit",
    policy: "daily",
    count: 2,
    limit: 2,
    cost: { daily: 1, weekly: 0 },
  });
  assert.deepEqual(
    (await kept(options, "b")).map(({ operation, retryAfter, cost }) => [operation, retryAfter, cost]),
    [["reserve", null, 3]],
  );
  assert.deepEqual(
    (await kept(options, "c")).map(({ operation }) => operation),
    ["hitAll"],
  );
  // It would have been allowed, and a peek is no hit.
  assert.deepEqual(await kept(options, "d"), []);
  const list = `${options.prefix}history:default:a`;
  const ttl = await setting.redis.pttl(list);
  assert.ok(ttl > 86_000_000 && ttl <= 86_400_000);
});

test("the list of a key is capped, and written without being asked", async () => {
  const options = setting.options({ history: 2, name: "capped" });
  const ban = { algorithm: "ban", after: 2, scale: "1d", for: "1d" };
  const end = Date.now() + 60_000;
  for (let round = 1; round <= 3; round += 1) {
    const limiter = new RedisLimiter([policies[0], ban], options);
    await limiter.hit("key", { daily: 2 + round });
    // Once by itself, after a second; the others as the limiter ends.
    if (round > 1) limiter[Symbol.dispose]();
    while ((await kept(options, "key"))[0]?.cost?.daily !== 2 + round)
      assert.ok(Date.now() < end, "nothing is written");
  }
  const items = await kept(options, "key");
  assert.deepEqual(
    items.map(({ cost, reason }) => [cost.daily, reason]),
    [
      [5, "banned"],
      [4, "banned"],
    ],
  );
});

test("a flood over many keys is written for the first of them and a hundred more", async () => {
  const options = setting.options({ history: 10, onDecision: () => heard++ });
  let heard = 0;
  const limiter = new RedisLimiter({ algorithm: "fix_window", limit: 1, scale: "1d" }, options);
  await Promise.all(Array.from({ length: 300 }, (_, number) => limiter.hit(`key${number}`, 2)));
  limiter[Symbol.dispose]();
  const lists = await setting.redis.keys(`${options.prefix}history:*`);
  assert.deepEqual([lists.length, heard], [101, 300]);
});

test("without the option nothing is written, and decisions are not even listened to", async () => {
  const options = setting.options();
  const limiter = new RedisLimiter(policies, options);
  for (let count = 0; count < 4; count += 1) await limiter.hit("a");
  assert.equal(limiter.publisher.isHeard, false);
  limiter[Symbol.dispose]();
  assert.equal((await setting.redis.keys(`${options.prefix}*`)).length, 1);
});

test("a denial after a quiet time is kept also if the client quits first", async () => {
  const options = setting.options({ client: setting.redis.duplicate(), history: 10 });
  const limiter = new RedisLimiter(policies, options);
  await limiter.hit("a", 2);
  await limiter.hit("a");
  await options.client.quit();
  limiter[Symbol.dispose]();
  assert.deepEqual(
    (await kept(options, "a")).map(({ times, count }) => [times, count]),
    [[1, 2]],
  );
});

test("a Redis that does not take it breaks no decision", async () => {
  const commands = [];
  const client = through(setting.redis, (send, { command, args }) => {
    commands.push(command);
    if (args.some((arg) => arg.includes("LPUSH"))) throw new Error("NOPERM no");
    return send();
  });
  const limiter = new RedisLimiter(policies, setting.options({ client, history: 10 }));
  await limiter.hit("a", 2);
  assert.equal((await limiter.hit("a")).allowed, false);
  limiter[Symbol.dispose]();
  assert.ok(commands.length >= 2);
});

test("an invalid length is an error", () => {
  for (const history of [-1, 1.5, 1_001, "100", true])
    assert.throws(() => new RedisLimiter(policies, setting.options({ history })), {
      code: "invalid_option",
      message: /^history: .* is not an integer from 0 to 1000$/,
    });
});
