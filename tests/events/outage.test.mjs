// An outage of a store is seen in the log, whoever listens: a line when it begins, one a minute, and one when it has ended,
// with how many decisions were made without the store.

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { test } from "node:test";
import { metrics } from "tollgate/metrics";
import { RedisLimiter } from "tollgate/redis";
import { StoreLimiter } from "tollgate/store";

const policy = { algorithm: "fix_window", limit: 10, scale: "1d" };
const ok = { get: () => null, swap: () => true };

/** A log that is read instead of printed, under timers that the test moves. */
function logged(t) {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const warn = t.mock.method(console, "warn", () => {});
  return {
    pass: (seconds) => t.mock.timers.tick(1_000 * seconds),
    lines() {
      const lines = warn.mock.calls.map(({ arguments: [line] }) => line);
      warn.mock.resetCalls();
      return lines;
    },
  };
}

/** A store that fails while it is told to. */
function failing() {
  const state = { isDown: true };
  const call =
    (work) =>
    (...args) => {
      if (state.isDown) throw new Error("connection\u001b[31m \u202erefused");
      return work(...args);
    };
  return { state, store: { get: call(ok.get), swap: call(ok.swap) } };
}

const begins =
  /^tollgate: the store failed, and hits are decided without it \(onError: "allow"\): .*connection/;

test("a line when it begins, one a minute, and one when it has ended, each time", async (t) => {
  const log = logged(t);
  const { state, store } = failing();
  const limiter = new StoreLimiter(policy, { store, onError: "allow" });
  for (const round of [1, 2]) {
    state.isDown = true;
    await limiter.hit("a");
    await limiter.hit("b");
    const [first, ...others] = log.lines();
    assert.match(first, begins, `round ${round}`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for.
    assert.doesNotMatch(first, /[\x00-\x1f\u202e]/);
    assert.deepEqual(others, []);
    log.pass(59);
    await limiter.reserve("a");
    assert.deepEqual(log.lines(), []);
    log.pass(1);
    assert.deepEqual(log.lines(), [
      "tollgate: the store still fails; decided without it in the last minute: 2 allowed by onError",
    ]);
    state.isDown = false;
    await limiter.hit("a");
    log.pass(2);
    assert.deepEqual(log.lines(), [
      "tollgate: the store responds again; decided without it in 61 s: 3 allowed by onError",
    ]);
    log.pass(600);
    assert.deepEqual(log.lines(), []);
  }
});

test("a store that fails now and then is one outage until it responds for a second", async (t) => {
  const log = logged(t);
  const { state, store } = failing();
  const limiter = new StoreLimiter(policy, { store, onError: "deny" });
  for (let second = 0; second < 10; second++) {
    state.isDown = true;
    await limiter.hit("a");
    state.isDown = false;
    await limiter.hit("a");
    log.pass(1);
  }
  assert.equal(log.lines().length, 1);
  log.pass(1);
  assert.deepEqual(log.lines(), [
    "tollgate: the store responds again; decided without it in 11 s: 10 denied by onError",
  ]);
});

test("where timers end with a request, as in a Worker, a later outage is logged all the same", async (t) => {
  const log = logged(t);
  const { store } = failing();
  const limiter = new StoreLimiter(policy, { store, onError: "allow" });
  await limiter.hit("a");
  t.mock.timers.reset();
  const { now } = Date;
  const later = now() + 130_000;
  t.mock.method(Date, "now", () => later);
  t.mock.timers.enable({ apis: ["setInterval"] });
  await limiter.hit("a");
  assert.equal(log.lines().filter((line) => begins.test(line)).length, 2);
});

test("metrics and listeners of the channel take no line away, and limiters on one store share them", async (t) => {
  const log = logged(t);
  const counting = metrics({});
  t.after(() => counting[Symbol.dispose]());
  const listener = () => {};
  subscribe("tollgate:error", listener);
  t.after(() => unsubscribe("tollgate:error", listener));
  const client = { send: () => Promise.reject(new Error("down")) };
  const limiters = ["one", "two"].map(
    (name) => new RedisLimiter(policy, { client, name, fallback: { share: 1 } }),
  );
  for (const limiter of limiters) await limiter.hit("a");
  const [line, ...others] = log.lines();
  assert.match(line, /^tollgate: Redis failed, and hits are decided without it \(fallback\): .*down/);
  assert.deepEqual(others, []);
  assert.match(counting.text(), /tollgate_errors_total\{.*verdict="fallback"\} 2/);
});

test("errors that are thrown are the caller's, and not logged", async (t) => {
  const log = logged(t);
  const { store } = failing();
  await assert.rejects(new StoreLimiter(policy, { store }).hit("a"), { code: "unanswered" });
  assert.deepEqual(log.lines(), []);
});
