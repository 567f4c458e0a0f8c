// What a service needs of a throttle: it pauses and goes on, ends without losing calls, waits through an outage of its store,
// and does not repeat what cannot succeed.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test, { describe } from "node:test";
import { RateLimiter, Throttle, TollgateError } from "tollgate";
import { FakeTime, settled } from "./lib/time.mjs";

const many = { algorithm: "token_bucket", capacity: 1_000, refillRate: 1_000 };
const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

function start(policy = many, options = {}) {
  const time = new FakeTime();
  const throttle = new Throttle(policy, { clock: time.clock, timer: time.timer, ...options });
  return { time, throttle };
}

describe("pause and resume", () => {
  test("no call goes through between them, and all keep their order", async () => {
    const { throttle } = start();
    const done = [];
    const wait = (name, options) => throttle.acquire(options).then(() => done.push(name));
    throttle.pause();
    const all = [wait("a"), wait("b", { key: "other" }), wait("c", { priority: 1 })];
    await settled();
    assert.deepEqual([done, throttle.pending], [[], 3]);
    throttle.resume();
    await Promise.all(all);
    assert.deepEqual(done, ["c", "a", "b"]);
    await throttle.acquire();
  });

  test("maxWait goes on meanwhile, and a pause may be repeated", async () => {
    const { time, throttle } = start();
    throttle.pause();
    throttle.pause();
    const late = assert.rejects(throttle.acquire({ maxWait: 500 }), { code: "max_wait" });
    await time.pass(1_000);
    await late;
    throttle.resume();
    throttle.resume();
    await throttle.acquire();
  });
});

describe("onIdle and stop", () => {
  test("onIdle resolves when no call waits and no work runs", async () => {
    const { throttle } = start({ algorithm: "concurrency", limit: 1 });
    await throttle.onIdle();
    const ends = [];
    const work = () => throttle.run(() => new Promise((resolve) => ends.push(resolve)));
    const all = [work(), work()];
    let isIdle = false;
    const idle = Promise.all([throttle.onIdle(), throttle.onIdle()]).then(() => {
      isIdle = true;
    });
    for (const end of [0, 1]) {
      await settled();
      assert.deepEqual([ends.length, isIdle], [end + 1, false]);
      ends[end]();
    }
    await Promise.all([...all, idle]);
    await throttle.onIdle();
  });

  test("stop lets those through that wait, also after a pause, and no others", async () => {
    const { time, throttle } = start(onePerSecond);
    throttle.pause();
    const done = [];
    const all = ["a", "b"].map((name) => throttle.acquire().then(() => done.push(name)));
    let isStopped = false;
    const stopped = throttle.stop().then(() => {
      isStopped = true;
    });
    const after = { code: "disposed", message: "this throttle was stopped; make a new one" };
    await assert.rejects(throttle.acquire(), after);
    await assert.rejects(
      throttle.run(() => assert.fail("it ran")),
      after,
    );
    await settled();
    assert.deepEqual([done, isStopped], [["a"], false]);
    await time.pass(1_000);
    await Promise.all([...all, stopped]);
    assert.deepEqual(done, ["a", "b"]);
  });
});

describe('onError: "wait"', () => {
  const failing = () => {
    const state = { isDown: true, asked: 0 };
    const inner = new RateLimiter(many);
    const ask = (method, args) => {
      state.asked++;
      if (state.isDown) return Promise.reject(new TollgateError("unanswered", "Redis did not answer"));
      return Promise.resolve(inner[method](...args));
    };
    const limiter = {
      policies: inner.policies,
      hit: (...args) => ask("hit", args),
      reserve: (...args) => ask("reserve", args),
    };
    return { state, limiter };
  };

  test("calls wait through an outage of the store, and ask once a second", async () => {
    const { state, limiter } = failing();
    const time = new FakeTime();
    const throttle = new Throttle({ limiter, onError: "wait", clock: time.clock, timer: time.timer });
    const all = [throttle.acquire(), throttle.acquire(), throttle.run(() => "worked")];
    await time.pass(10_000);
    assert.equal(throttle.pending, 3);
    assert.ok(state.asked <= 11, `${state.asked}`);
    const impatient = throttle.acquire({ key: "other", maxWait: 3_000 });
    await assert.rejects(Promise.all([impatient, time.pass(5_000)]), { code: "max_wait" });
    state.isDown = false;
    await time.pass(2_000);
    assert.equal((await Promise.all(all))[2], "worked");
  });

  test("by default the error is the call's, as one of the caller always is", async () => {
    const { limiter } = failing();
    await assert.rejects(new Throttle({ limiter }).acquire(), { code: "unanswered" });
    const wrong = { ...limiter, hit: async () => Promise.reject(new TollgateError("invalid_cost", "cost")) };
    await assert.rejects(new Throttle({ limiter: wrong, onError: "wait" }).acquire(), {
      code: "invalid_cost",
    });
    assert.throws(() => new Throttle({ limiter, onError: "allow" }), { message: /^onError: "allow" is not/ });
  });
});

describe("a fetch that cannot succeed", () => {
  const json = (body, status = 429, headers = {}) =>
    new Response(JSON.stringify(body), {
      status,
      headers: { "Content-Type": "application/json", ...headers },
    });
  const asking = (answer, options) => {
    const sent = [];
    const { time, throttle } = start(many, {
      random: () => 0,
      fetch: async (request) => {
        sent.push(new URL(request.url).pathname);
        return answer(request, sent.length);
      },
      ...options,
    });
    const ask = async (path = "/") => {
      const response = throttle.fetch(`https://api.example.com${path}`);
      await time.pass(60_000);
      return response;
    };
    return { sent, ask, throttle, time };
  };

  for (const [name, answer] of [
    ["x-should-retry: false", () => json({}, 429, { "X-Should-Retry": "false", "Retry-After": "30" })],
    ["insufficient_quota", () => json({ error: { code: "insufficient_quota", message: "You exceeded" } })],
  ])
    test(`${name} is not sent again, holds no other call, and has its body`, async () => {
      const { sent, throttle } = asking((_, count) => (count === 1 ? answer() : new Response("ok")));
      const response = await throttle.fetch("https://api.example.com/first");
      assert.deepEqual([response.status, typeof (await response.json())], [429, "object"]);
      assert.equal(await (await throttle.fetch("https://api.example.com/second")).text(), "ok");
      assert.deepEqual(sent, ["/first", "/second"]);
    });

  test("another denial with JSON is sent again", async () => {
    const { sent, ask } = asking((_, count) =>
      count === 1 ? json({ error: { code: "rate_limit_exceeded" } }) : new Response("ok"),
    );
    assert.equal((await ask()).status, 200);
    assert.equal(sent.length, 2);
  });

  test("retryBudget: a retry takes one, and ten successes add one", async () => {
    let status = 429;
    const { sent, ask } = asking(() => new Response("", { status }), { retryBudget: 2 });
    // Two retries are saved up, of three that are wanted.
    await ask();
    assert.equal(sent.length, 3);
    await ask();
    assert.equal(sent.length, 4);
    status = 200;
    for (let count = 0; count < 10; count += 1) await ask();
    status = 429;
    sent.length = 0;
    await ask();
    assert.equal(sent.length, 2);
    assert.throws(() => start(many, { retryBudget: -1 }), {
      message: /^retryBudget: -1 is not a number of retries/,
    });
  });
});

test("hold needs a time, and a call without a key has one name", async () => {
  const { time, throttle } = start();
  for (const time of [undefined, null, "5s", Number.NaN, -1])
    assert.throws(() => throttle.hold("a", time), {
      code: "invalid_option",
      message: /^milliseconds.* of milliseconds/,
    });
  throttle.hold("default", 5_000);
  await assert.rejects(throttle.acquire({ maxWait: 1_000 }), { code: "max_wait" });
  await assert.rejects(throttle.acquire({ key: "", maxWait: 1_000 }), { code: "max_wait" });
  await time.pass(5_000);
  await throttle.acquire();

  const asked = [];
  const limiter = { hit: async (key) => asked.push(key) && { allowed: true, limit: 1, remaining: 0 } };
  await new Throttle({ limiter }).acquire();
  assert.deepEqual(asked, ["default"]);
});

test("an error of the CommonJS copy of the package is one of the ES module's, and of its own class", () => {
  const require = createRequire(import.meta.url);
  const commonJs = require("tollgate");
  assert.notEqual(commonJs.TollgateError, TollgateError);
  for (const [Limiter, ErrorClass] of [
    [commonJs.RateLimiter, TollgateError],
    [RateLimiter, commonJs.TollgateError],
  ])
    assert.throws(() => new Limiter({}), ErrorClass);
  class Own extends TollgateError {}
  const error = new TollgateError("invalid_key", "key");
  assert.deepEqual(
    [error instanceof Own, new Own("invalid_key", "key") instanceof Own, error instanceof Error],
    [false, true, true],
  );
  for (const value of [undefined, null, 5, {}, new Error("no")])
    assert.equal(value instanceof TollgateError, false);
});
