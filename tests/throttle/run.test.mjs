// `Throttle.run` runs as many at once as the policy allows, and charges what they used.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Throttle } from "../../dist/node.js";

/** A throttle under a clock and a timer of its own. */
function made(policies) {
  let now = 1_767_225_600_000;
  const timers = new Set();
  const timer = (work, delay) => {
    const entry = { at: now + delay, work };
    timers.add(entry);
    return () => timers.delete(entry);
  };
  const throttle = new Throttle(policies, { clock: () => now, timer });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const advance = async (milliseconds) => {
    now += milliseconds;
    for (const entry of [...timers].filter(({ at }) => at <= now)) {
      timers.delete(entry);
      entry.work();
    }
    await turn();
  };
  return { throttle, turn, advance };
}

/** Work that ends when it is told to. */
function job() {
  const control = {};
  control.promise = new Promise((resolve, reject) => Object.assign(control, { resolve, reject }));
  return control;
}

const fails = () => {
  throw new Error("broken");
};

const concurrency = { name: "running", algorithm: "concurrency", limit: 2 };

test("as many run as the policy says, and the next when one ends", async () => {
  const { throttle, turn } = made(concurrency);
  const jobs = Array.from({ length: 5 }, job);
  const started = [];
  const runs = jobs.map((one, at) =>
    throttle.run(() => {
      started.push(at);
      return one.promise;
    }),
  );
  await turn();
  assert.deepEqual([started, throttle.pending], [[0, 1], 3]);
  jobs[1].resolve("b");
  assert.equal(await runs[1], "b");
  await turn();
  assert.deepEqual(started, [0, 1, 2]);
  jobs[0].reject(new Error("broken"));
  await assert.rejects(runs[0], /broken/);
  await turn();
  assert.deepEqual(started, [0, 1, 2, 3]);
  for (const one of jobs) one.resolve();
  await Promise.all(runs.slice(1));
  assert.equal(throttle.pending, 0);
});

test("a call that waits for running work gives up at its own maxWait, not at once", async () => {
  const { throttle, turn, advance } = made(concurrency);
  const [one, other] = [job(), job()];
  const first = throttle.run(() => one.promise);
  throttle.run(() => other.promise);
  await turn();
  const late = assert.rejects(
    throttle.run(() => "late", { maxWait: 1_000 }),
    { code: "max_wait" },
  );
  const inTime = throttle.run(() => "in time", { maxWait: 2_000 });
  await advance(1_500);
  await late;
  one.resolve();
  await first;
  assert.equal(await inTime, "in time");
  other.resolve();
});

test("work may report what it used; work that throws is charged in full, or not at all with the option", async () => {
  const { throttle } = made([concurrency, { name: "tpm", algorithm: "fix_window", limit: 100, scale: "1h" }]);
  const isLeft = async (tpm) => {
    const run = throttle.run(({ settle }) => settle({ tpm: 0 }), { cost: { tpm }, maxWait: 0 });
    return run.then(
      () => true,
      ({ code }) => code !== "max_wait",
    );
  };
  await throttle.run(({ settle }) => settle({ tpm: 7 }), { cost: { tpm: 40 } });
  assert.deepEqual([await isLeft(93), await isLeft(94)], [true, false]);
  await assert.rejects(throttle.run(fails, { cost: { tpm: 90 }, cancelOnThrow: true }), /broken/);
  assert.deepEqual([await isLeft(93), await isLeft(94)], [true, false]);
  await assert.rejects(throttle.run(fails, { cost: { tpm: 90 } }), /broken/);
  assert.deepEqual([await isLeft(3), await isLeft(4)], [true, false]);
});

test("invalid input is rejected, and takes no place", async () => {
  const { throttle } = made(concurrency);
  const cases = [
    [() => throttle.acquire(), "reserve_only", /use run; see docs\/concurrency\.md$/],
    [() => throttle.run("work"), "invalid_option", /^work: /],
    [() => throttle.run(() => 1, { cancelOnThrow: 1 }), "invalid_option", /cancelOnThrow/],
    [() => throttle.run(() => 1, { ttl: "2d" }), "invalid_option", /ttl/],
    [() => throttle.run(() => 1, { tll: 1 }), "invalid_option", /tll/],
    [() => throttle.run(() => 1, { cost: 3 }), "invalid_cost", /never fit/],
    [() => throttle.run(() => 1, { cost: { x: 1 } }), "unknown_policy", /"x"/],
  ];
  for (const [work, code, message] of cases) await assert.rejects(work, { code, message }, String(work));
  assert.equal(throttle.pending, 0);
  assert.deepEqual(await Promise.all([throttle.run(() => 1), throttle.run(() => 2)]), [1, 2]);
});

test("calls of the same turn wait for work that may end in time", async () => {
  const { throttle } = made({ ...concurrency, limit: 1 });
  const work = job();
  const first = throttle.run(() => work.promise);
  const second = throttle.run(() => "second", { maxWait: 1_000 });
  work.resolve("first");
  assert.deepEqual(await Promise.all([first, second]), ["first", "second"]);
});

test("work that ends after its throttle was disposed of keeps its result and its error", async () => {
  for (const [end, expected] of [
    ["resolve", { status: "fulfilled", value: "done" }],
    ["reject", { status: "rejected", reason: "done" }],
  ]) {
    const { throttle, turn } = made(concurrency);
    const work = job();
    const run = throttle.run(() => work.promise);
    await turn();
    throttle[Symbol.dispose]();
    work[end]("done");
    assert.deepEqual(await Promise.allSettled([run]), [expected]);
  }
});
