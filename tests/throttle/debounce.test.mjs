// `wrap` with `edge: "debounce"`: the last call before a pause runs, in its turn; no turn is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Throttle } from "tollgate";
import { FakeTime, settled } from "./lib/time.mjs";

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

function start(options = {}, policy = onePerSecond) {
  const time = new FakeTime();
  const began = time.now;
  const throttle = new Throttle(policy, { clock: time.clock, timer: time.timer });
  const ran = [];
  const work = (text) => {
    ran.push(`${text} ${time.now - began}`);
    return text.length;
  };
  const save = throttle.wrap(work, { edge: "debounce", wait: 300, ...options });
  return { time, throttle, ran, save };
}

test("the last call before a pause runs; the others return undefined at once", async () => {
  const { time, ran, save } = start();
  const first = save("a");
  await time.pass(299);
  const second = save("ab");
  assert.equal(await first, undefined);
  await time.pass(299);
  assert.deepEqual(ran, []);
  await time.pass(1);
  assert.equal(await second, 2);
  assert.deepEqual([ran, time.timers], [["ab 599"], 0]);
});

test("after the pause it waits its turn, and a later call takes over that turn", async () => {
  const { time, throttle, ran, save } = start(
    {},
    { algorithm: "token_bucket", capacity: 1, refillRate: 1, per: "2s" },
  );
  await throttle.acquire();
  const first = save("a");
  await time.pass(1_900);
  assert.equal(throttle.pending, 1);
  const second = save("ab");
  assert.equal(await first, undefined);
  // Its turn comes at 2,000, while the second call is still quiet until 2,200.
  await time.pass(100);
  assert.deepEqual(ran, []);
  await time.pass(200);
  assert.equal(await second, 2);
  assert.deepEqual(ran, ["ab 2200"]);
  // One turn was taken: the next comes two seconds after the last.
  save("abc");
  await time.pass(1_799);
  assert.equal(ran.length, 1);
  await time.pass(1);
  assert.deepEqual(ran[1], "abc 4000");
});

test("a call that runs is not dropped by the next", async () => {
  const { time, throttle } = start();
  let finish;
  const load = throttle.wrap(
    (text) =>
      new Promise((resolve) => {
        finish = () => resolve(text);
      }),
    { edge: "debounce", wait: 10 },
  );
  const first = load("first");
  await time.pass(10);
  const second = load("second");
  finish();
  assert.equal(await first, "first");
  await time.pass(1_000);
  finish();
  assert.equal(await second, "second");
});

test("its errors, a signal and clear reject it, also while it is quiet, and leave no timer", async () => {
  const leaving = new AbortController();
  const { time, throttle, save } = start({ signal: leaving.signal });
  const cleared = save("a");
  throttle.clear();
  await assert.rejects(cleared, { code: "cleared" });
  const because = save("b");
  throttle.clear("unmounted");
  assert.equal(await because.catch((reason) => reason), "unmounted");
  const aborted = save("c");
  leaving.abort("left");
  assert.equal(await aborted.catch((reason) => reason), "left");
  assert.equal(await save("d").catch((reason) => reason), "left");
  assert.equal(time.timers, 0);

  const fails = throttle.wrap(
    () => {
      throw new Error("broken");
    },
    { edge: "debounce", wait: 0 },
  );
  const broken = assert.rejects(fails(), /broken/);
  await time.pass(1_000);
  await broken;
});

test("a rejected turn rejects the call that waits, and the next call requests another", async () => {
  const { time, throttle, save } = start({ maxWait: 100 });
  await throttle.acquire();
  const tooLate = assert.rejects(save("a"), { code: "max_wait" });
  await time.pass(300);
  await tooLate;
  await time.pass(1_000);
  const next = save("b");
  await time.pass(300);
  assert.equal(await next, 1);
});

test("`this` and all arguments are passed on", async () => {
  const { time, throttle } = start();
  const object = {
    by: 2,
    times: throttle.wrap(
      function (one, other) {
        return (one + other) * this.by;
      },
      { edge: "debounce", wait: 0 },
    ),
  };
  const result = object.times(1, 2);
  await time.pass(0);
  await settled();
  assert.equal(await result, 6);
});

test("a missing or invalid wait is an error that names it", () => {
  const { throttle } = start();
  for (const [options, message] of [
    [{ edge: "debounce" }, "wait is required (a number of milliseconds, 0 or more)"],
    [{ edge: "trailing", wait: 5 }, 'wait: 5 is not used without edge: "debounce"'],
    [{ wait: 5 }, 'wait: 5 is not used without edge: "debounce"'],
  ])
    assert.throws(() => throttle.wrap(() => {}, options), { code: "invalid_option", message });
  assert.throws(() => throttle.wrap(() => {}, { edge: "debounce", wait: -1 }), { code: "invalid_option" });
  assert.throws(() => throttle.wrap(() => {}, { edge: "both" }), {
    message: 'edge: "both" is not "leading", "trailing" or "debounce"',
  });
});
