// `maxWait` holds while a limiter outside the process decides, also if it never answers; and waits that are too long for a
// platform's timer are waited for in parts.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { RateLimiter, Throttle } from "tollgate";
import { FakeTime, settled } from "./lib/time.mjs";

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

/** A limiter each of whose answers comes when the test says so, and calls of a throttle over it. */
function start() {
  const time = new FakeTime();
  const began = time.now;
  const inner = new RateLimiter(onePerSecond, { clock: time.clock });
  const asked = [];
  const hit = (key, cost) =>
    new Promise((resolve) => {
      asked.push(() => resolve(inner.hit(key, cost)));
    });
  const throttle = new Throttle({ limiter: { hit }, clock: time.clock, timer: time.timer });
  const done = [];
  const wait = (name, options) =>
    throttle.acquire(options).then(
      () => done.push(`${name} ${time.now - began}`),
      (error) => done.push(`${name} ${error.code ?? error} ${time.now - began}`),
    );
  return { time, throttle, asked, done, wait };
}

describe("a limiter that never answers", () => {
  test("rejects a call when its maxWait is over", async () => {
    const { time, throttle, done, wait } = start();
    wait("first", { maxWait: 5_000 });
    wait("second", { maxWait: 2_000 });
    await time.pass(60_000);
    assert.deepEqual(done, ["second max_wait 2000", "first max_wait 5000"]);
    assert.deepEqual([throttle.pending, time.timers], [0, 0]);
  });

  test("has a second for a call that must not wait", async () => {
    const { time, asked, done, wait } = start();
    wait("slow", { maxWait: 0 });
    await time.pass(999);
    assert.deepEqual(done, []);
    asked[0]();
    await settled();
    wait("never", { maxWait: 0 });
    await time.pass(1_000);
    assert.deepEqual(done, ["slow 999", "never max_wait 1999"]);
  });

  test("is asked again for the next call, and a late answer goes to one that waits", async () => {
    const { time, asked, done, wait } = start();
    wait("first", { maxWait: 1_000 });
    wait("second");
    wait("third");
    await time.pass(1_000);
    assert.equal(asked.length, 2, "again for the second");
    asked[0]();
    await settled();
    assert.deepEqual(done, ["first max_wait 1000", "second 1000"]);
    // Its own answer is the third's: a denial until 2,000.
    asked[1]();
    await time.pass(1_000);
    assert.equal(asked.length, 3);
    asked[2]();
    await settled();
    assert.deepEqual(done.slice(2), ["third 2000"]);
  });

  test("stops no later call for good, also if nobody waited meanwhile", async () => {
    const { time, asked, done, wait } = start();
    wait("lost", { maxWait: 1_500 });
    await time.pass(10_000);
    wait("later");
    await settled();
    assert.equal(asked.length, 2);
    asked[1]();
    await settled();
    assert.deepEqual(done, ["lost max_wait 1500", "later 10000"]);
  });

  test("rejects in time also after a call that a signal ended", async () => {
    const { time, asked, done, wait } = start();
    const leaving = new AbortController();
    wait("left", { signal: leaving.signal });
    await settled();
    leaving.abort("left");
    wait("next", { maxWait: 3_000 });
    wait("last");
    await time.pass(3_000);
    assert.deepEqual(done, ["left left 0", "next max_wait 3000"]);
    assert.equal(asked.length, 2, "again for the last");
  });
});

describe("a wait that is too long for a timer", () => {
  const long = 2 ** 31;

  /** A throttle whose timer rings at once for a wait that a platform's cannot have. */
  function withPlatformTimer() {
    const time = new FakeTime();
    const timer = (callback, wait) => time.timer(callback, wait >= long ? 1 : wait);
    return { time, throttle: new Throttle(onePerSecond, { clock: time.clock, timer }) };
  }

  for (const wait of [long, 3 * long + 5])
    test(`${wait} ms, of a batch and of a debounced call`, async () => {
      const { time, throttle } = withPlatformTimer();
      const ran = [];
      const add = throttle.batch((items) => ran.push(items), { most: 9, wait });
      const save = throttle.wrap((text) => ran.push(text), { edge: "debounce", wait, key: "other" });
      const both = Promise.all([add("item"), save("text")]);
      await time.pass(wait - 1);
      assert.deepEqual(ran, []);
      await time.pass(1);
      await both;
      assert.deepEqual([ran, time.timers], [[["item"], "text"], 0]);
    });

  test("without an end: until the batch is full, or cleared", async () => {
    const { time, throttle } = withPlatformTimer();
    const ran = [];
    const add = throttle.batch((items) => ran.push(items), { most: 2, wait: Number.POSITIVE_INFINITY });
    const first = add("a");
    await time.pass(3 * long);
    assert.deepEqual(ran, []);
    await Promise.all([first, add("b")]);
    assert.deepEqual([ran, time.timers], [[["a", "b"]], 0]);
    const cleared = assert.rejects(add("c"), { code: "cleared" });
    await time.pass(3 * long);
    throttle.clear();
    await cleared;
    assert.equal(time.timers, 0);
  });
});
