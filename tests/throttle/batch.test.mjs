// `batch`: items are collected, at most so many for a turn, in order; every item gets its own result or error.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Throttle } from "tollgate";
import fc from "../lib/properties.mjs";
import { FakeTime } from "./lib/time.mjs";

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

function start(options, work = (items) => items.map((item) => `did ${item}`)) {
  const time = new FakeTime();
  const began = time.now;
  const throttle = new Throttle(onePerSecond, { clock: time.clock, timer: time.timer });
  const batches = [];
  const add = throttle.batch((items) => {
    batches.push([time.now - began, ...items]);
    return work(items);
  }, options);
  return { time, throttle, batches, add };
}

test("items within the wait are one call, and each has its result", async () => {
  const { time, batches, add } = start({ most: 10, wait: 50 });
  const first = add("a");
  await time.pass(49);
  const second = add("b");
  await time.pass(1);
  assert.deepEqual(await Promise.all([first, second]), ["did a", "did b"]);
  assert.deepEqual([batches, time.timers], [[[50, "a", "b"]], 0]);
});

test("a full batch does not wait, and a batch that waits for its turn takes later items", async () => {
  const { time, batches, add } = start({ most: 2, wait: 50 });
  const all = ["a", "b", "c"].map(add);
  await time.pass(500);
  // "c" has asked for its turn at 50, which comes at 1,000.
  all.push(add("d"));
  await time.pass(500);
  assert.deepEqual(await Promise.all(all), ["did a", "did b", "did c", "did d"]);
  assert.deepEqual(batches, [
    [0, "a", "b"],
    [1_000, "c", "d"],
  ]);
  assert.equal(time.timers, 0);
});

test("an error of the work rejects its batch only; a wrong number of results is an error", async () => {
  const { time, add } = start({ most: 1 }, ([item]) => {
    if (item === "bad") throw new Error("broken");
    return item === "short" ? [] : [item];
  });
  const all = ["bad", "good", "short"].map((item) => add(item).catch((error) => error.message));
  await time.pass(3_000);
  assert.deepEqual(await Promise.all(all), [
    "broken",
    "good",
    "work: it returned 0 results for 1 items; return one for each",
  ]);
});

test("work that returns no array resolves its items with undefined", async () => {
  const { time, add } = start({ most: 5 }, async () => "sent");
  const sent = add("a");
  await time.pass(0);
  assert.equal(await sent, undefined);
});

test("clear, a signal and maxWait reject the items, and later ones start anew", async () => {
  const leaving = new AbortController();
  const { time, throttle, add, batches } = start({
    most: 2,
    wait: 50,
    maxWait: 10_000,
    signal: leaving.signal,
  });
  const reasons = (items) =>
    Promise.all(items.map((item) => add(item).catch((reason) => reason.code ?? reason)));
  await throttle.acquire();
  const cleared = reasons(["a", "b", "c"]);
  throttle.clear();
  assert.deepEqual(await cleared, ["cleared", "cleared", "cleared"]);
  const later = add("d");
  await time.pass(1_000);
  assert.equal(await later, "did d");
  throttle.hold("", 20_000);
  const late = reasons(["e"]);
  await time.pass(50);
  assert.deepEqual(await late, ["max_wait"]);
  const left = reasons(["f"]);
  leaving.abort("left");
  assert.deepEqual([...(await left), ...(await reasons(["g"]))], ["left", "left"]);
  assert.deepEqual([batches, throttle.pending, time.timers], [[[1_000, "d"]], 0, 0]);
});

test("any items at any times: each once, in order, never more than fit, never more turns than there are", async () => {
  const arrivals = fc.array(fc.record({ pause: fc.constantFrom(0, 0, 0, 10, 60, 700) }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(
      arrivals,
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom(0, 50),
      async (each, most, wait) => {
        const { time, add, batches } = start({ most, wait });
        const results = [];
        for (const [item, { pause }] of each.entries()) {
          await time.pass(pause);
          results.push(add(item));
        }
        await time.pass(100_000);
        assert.deepEqual(
          await Promise.all(results),
          each.map((_, item) => `did ${item}`),
        );
        assert.deepEqual(
          batches.flatMap(([, ...items]) => items),
          each.map((_, item) => item),
        );
        for (const [at, [when, ...items]] of batches.entries()) {
          assert.ok(items.length >= 1 && items.length <= most);
          if (at > 0) assert.ok(when - batches[at - 1][0] >= 1_000);
        }
        assert.equal(time.timers, 0);
      },
    ),
    { numRuns: 200 },
  );
});

test("an error names the invalid option", () => {
  const { throttle } = start({ most: 1 });
  for (const [work, options, message] of [
    [5, { most: 1 }, "work: 5 is not a function"],
    [() => {}, { most: 0 }, "most: 0 is not an integer of at least 1"],
    [() => {}, {}, "most is required (an integer of at least 1)"],
    [() => {}, { most: 1, wait: -1 }, "wait: -1 is not a number of milliseconds, 0 or more"],
  ])
    assert.throws(() => throttle.batch(work, options), { code: "invalid_option", message });
});
