// A limiter that is disposed of while operations are under way, and a trap in the wasm: no other limiter is affected, and
// every error is typed.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { connect } from "./lib/server.mjs";
import { through, times, withServer } from "./lib/setting.mjs";
import { entry } from "./lib/value.mjs";

const setting = withServer();
const { options, value } = setting;
const window = { algorithm: "fix_window", limit: 100_000, scale: "365d" };

/** A client that sends each command at once, and holds the replies back until they are released. */
function holding() {
  const held = [];
  return {
    held,
    client: through(setting.redis, async (send) => {
      const reply = await send();
      await new Promise((resolve) => held.push(resolve));
      return reply;
    }),
    async release() {
      while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
      for (const resolve of held.splice(0)) resolve();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

/** Another limiter of this process, and the check that its cached states were not lost. */
async function bystander() {
  const limiter = new RedisLimiter(window, options());
  await times(3, (number) => limiter.hit(`key ${number}`));
  return async () => {
    await limiter.hit("key 0");
    assert.equal(limiter.stats.keys, 3, "its states were lost");
  };
}

describe("a limiter that is disposed of", () => {
  test("ends what is under way with its result, and takes no more", async () => {
    const keepsItsStates = await bystander();
    const given = options();
    const { client, release } = holding();
    const limiter = new RedisLimiter(window, { ...given, client });
    const sent = times(3, (number) => limiter.hit(`key ${number}`));
    await release();
    await release();
    for (const { count } of await sent) assert.equal(count, 1);

    const again = times(3, (number) => limiter.hit(`key ${number}`, 2));
    const behind = new Promise((resolve) => setImmediate(resolve)).then(() => limiter.hit("key 0"));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    limiter[Symbol.dispose]();
    limiter[Symbol.dispose]();
    for (const operation of [
      () => limiter.hit("key 0"),
      () => limiter.hit("key 0", 1, { ...window, limit: 5 }),
      () => limiter.peek("key 0"),
      () => limiter.set("key 0", 1),
      () => limiter.reserve("key 0"),
    ])
      await assert.rejects(operation(), { code: "disposed" });
    const ended = Promise.all([again, behind]);
    let isOver = false;
    ended.finally(() => {
      isOver = true;
    });
    while (!isOver) await release();
    const [decisions, last] = await ended;
    for (const { count } of decisions) assert.equal(count, 3);
    assert.equal(last.count, 4);
    await keepsItsStates();
    const other = new RedisLimiter(window, given);
    assert.deepEqual(await times(3, (number) => other.get(`key ${number}`)), [4, 3, 3]);
  });

  test("ignores replies that come after its operations timed out", async () => {
    const keepsItsStates = await bystander();
    const { client, release } = holding();
    const limiter = new RedisLimiter(window, options({ client, timeout: 50 }));
    const hit = limiter.hit("a");
    limiter[Symbol.dispose]();
    await assert.rejects(hit, { code: "unanswered" });
    await release();
    await keepsItsStates();
  });

  test("ends a call that only shortens a log", async () => {
    const keepsItsStates = await bystander();
    const given = options();
    await new RedisLimiter(window, given).hit("a");
    const { key } = await value(given);
    for (let number = 0; number < 100; number++) await setting.redis.append(key, entry("h", number));
    let calls = 0;
    const { client, release } = holding();
    const counted = { send: (...args) => client.send(...args, calls++) };
    const limiter = new RedisLimiter(window, { ...given, client: counted });
    const hit = limiter.hit("a");
    while (calls < 3) {
      await release();
      // The hit has its result, and the call that shortens is under way.
      if ((await Promise.race([hit, undefined])) !== undefined) break;
    }
    assert.equal((await hit).count, 102);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    const before = (await setting.redis.get(key)).length;
    assert.equal(limiter.stats.bases, 0);
    limiter[Symbol.dispose]();
    while (limiter.stats.bases === 0) await release();
    assert.ok(before < 200, `${before} characters`);
    await keepsItsStates();
    assert.equal(await new RedisLimiter(window, given).get("a"), 102);
  });

  test("with leases, while one is renewed", async () => {
    const keepsItsStates = await bystander();
    const client = connect(setting.server.port);
    try {
      for (let round = 0; round < 20; round++) {
        const given = options({ client, leases: true });
        const limiter = new RedisLimiter(window, given);
        const hits = [];
        for (let number = 0; number < 200; number++) {
          hits.push(limiter.hit(`key ${number % 7}`));
          if (number % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        limiter[Symbol.dispose]();
        for (const { status, value, reason } of await Promise.allSettled(hits))
          assert.ok(status === "fulfilled" ? value.allowed : reason.code === "disposed", String(reason));
        await keepsItsStates();
      }
    } finally {
      client.disconnect();
    }
  });
});

describe("a trap in the wasm", () => {
  const { charCodeAt } = String.prototype;
  const { encodeInto } = TextEncoder.prototype;
  const isArmed = () => String.prototype.charCodeAt !== charCodeAt;
  /** Makes a call of the wasm fail as with an exhausted stack, once it is given so many more texts. */
  const trapAfter = (texts) => {
    let left = texts;
    const pass = () => {
      if (left-- > 0) return;
      String.prototype.charCodeAt = charCodeAt;
      TextEncoder.prototype.encodeInto = encodeInto;
      throw new RangeError("Maximum call stack size exceeded");
    };
    // Replies are encoded in one go.
    TextEncoder.prototype.encodeInto = function (...args) {
      pass();
      return encodeInto.apply(this, args);
    };
    // The glue passes other texts from their first character on; `readReply` subtracts 48, and reads a text of 7.
    String.prototype.charCodeAt = function (at) {
      if (at === 0 && this.length !== 7) pass();
      return charCodeAt.call(this, at);
    };
  };

  for (const [when, texts] of [
    ["while the replies are replayed", 0],
    ["while the first operation reads", 1],
    ["while the second does", 2],
  ])
    test(`${when} fails the calls under way with a typed error, and those after it are right`, async () => {
      const given = options();
      const { client, held, release } = holding();
      const slow = new RedisLimiter(window, { ...given, client });
      const limiter = new RedisLimiter(window, {
        ...given,
        client: through(setting.redis, async (send) => {
          const reply = await send();
          if (isTrapping) trapAfter(texts);
          return reply;
        }),
      });
      let isTrapping = false;
      const keys = Array.from({ length: 5 }, (_, number) => `key ${number}`);
      await Promise.all(keys.map((key) => limiter.hit(key)));
      const first = slow.hit("key 0");
      await release();
      await release();
      await first;
      // Under way while the instance is lost, by another limiter.
      const under = Promise.allSettled(keys.map((key) => slow.hit(key)));
      while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));

      isTrapping = true;
      const results = await Promise.allSettled([
        ...keys.map((key) => limiter.hit(key)),
        ...keys.map((key) => limiter.get(key)),
        limiter.peek("key 0", 1, { ...window, limit: 7 }),
      ]);
      isTrapping = false;
      assert.equal(isArmed(), false, "there was no trap");
      const failed = results.filter(({ status }) => status === "rejected");
      for (const { reason } of failed) assert.equal(reason.code, "state_lost", String(reason));
      assert.ok(failed.some(({ reason }) => reason.cause instanceof RangeError));
      // A call's own policies need no states.
      const peeked = limiter.peek("key 0", 1, { ...window, limit: 7 });
      await release();
      for (const { status, reason } of await under)
        assert.ok(status === "fulfilled" || reason.code === "state_lost", String(reason));
      assert.equal((await peeked).allowed, true);

      const more = Promise.all(keys.map((key) => slow.hit(key)));
      let isOver = false;
      more.finally(() => {
        isOver = true;
      });
      while (!isOver) await release();
      // One each, one of `slow` at first, one under way, one with the trap, and this.
      assert.deepEqual(
        (await more).map(({ count }) => count),
        [5, 4, 4, 4, 4],
      );
      assert.deepEqual(await Promise.all(keys.map((key) => limiter.get(key))), [5, 4, 4, 4, 4]);
    });

  test("is decided by `onError`", async () => {
    let isTrapping = false;
    const client = through(setting.redis, async (send) => {
      const reply = await send();
      if (isTrapping) trapAfter(0);
      return reply;
    });
    const limiter = new RedisLimiter(window, options({ client, onError: "deny" }));
    await limiter.hit("a");
    isTrapping = true;
    const decision = await limiter.hit("a");
    isTrapping = false;
    assert.deepEqual([decision.allowed, decision.reason], [false, "error"]);
    assert.equal((await limiter.hit("a")).count, 3);
  });
});
