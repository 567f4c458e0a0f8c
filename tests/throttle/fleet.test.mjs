// A throttle over a limiter outside the process: in order, as long as its decisions say, and asked no more often than that.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { RateLimiter, Throttle, throttledFetch } from "tollgate";
import { StoreLimiter } from "tollgate/store";
import { FakeTime, settled } from "./lib/time.mjs";

const onePerSecond = { algorithm: "token_bucket", capacity: 1, refillRate: 1 };

/** A limiter elsewhere, whose decisions take a while; it notes how often it is asked. */
function elsewhere(time, policy, latency = 0) {
  const limiter = new RateLimiter(policy, { clock: time.clock });
  const asked = [];
  const reply = (work) =>
    new Promise((resolve, reject) => {
      const answer = () => {
        try {
          resolve(work());
        } catch (error) {
          reject(error);
        }
      };
      if (latency === 0) queueMicrotask(answer);
      else time.timer(answer, latency);
    });
  return {
    asked,
    inner: limiter,
    policies: limiter.policies,
    hit(key, cost) {
      asked.push(key);
      return reply(() => limiter.hit(key, cost));
    },
    reserve(key, cost, options) {
      asked.push(key);
      return reply(() => {
        const made = limiter.reserve(key, cost, options);
        return {
          decision: made.decision,
          allowed: made.allowed,
          settle: (used) => reply(() => made.settle(used)),
        };
      });
    },
  };
}

function start(policy = onePerSecond, { latency, ...options } = {}) {
  const time = new FakeTime();
  const limiter = elsewhere(time, policy, latency);
  const throttle = new Throttle({ limiter, clock: time.clock, timer: time.timer, ...options });
  const done = [];
  const began = time.now;
  const wait = (name, asked) =>
    throttle.acquire(asked).then(
      () => done.push(`${name} ${time.now - began}`),
      (error) => done.push(`${name} ${error.code ?? error}`),
    );
  return { time, limiter, throttle, done, wait };
}

test("in order, each when the limiter allows it, and asked twice for each wait", async () => {
  const { time, limiter, throttle, done, wait } = start();
  for (const name of ["a", "b", "c"]) wait(name);
  await time.pass(999);
  assert.deepEqual(done, ["a 0"]);
  await time.pass(2_000);
  assert.deepEqual(done, ["a 0", "b 1000", "c 2000"]);
  // "b" and "c" were each denied once.
  assert.deepEqual(limiter.asked, Array(5).fill("default"));
  assert.deepEqual([throttle.pending, time.timers], [0, 0]);
});

test("two processes on one limiter admit together what it allows", async () => {
  const time = new FakeTime();
  const limiter = elsewhere(time, { algorithm: "token_bucket", capacity: 3, refillRate: 1 }, 5);
  const began = time.now;
  const times = [];
  const processes = [1, 2].map(() => new Throttle({ limiter, clock: time.clock, timer: time.timer }));
  const orders = processes.map(() => []);
  for (const [at, throttle] of processes.entries())
    for (let number = 0; number < 6; number += 1)
      throttle.acquire({ key: "api" }).then(() => {
        orders[at].push(number);
        times.push(time.now - began);
      });
  await time.pass(12_000);
  assert.equal(times.length, 12);
  for (const order of orders) assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
  for (const [count, at] of times.entries()) assert.ok(count < 3 + at / 1_000, `${count} at ${at}`);
  // Each process was denied at most once for each call that the other one made first.
  assert.ok(limiter.asked.length <= 12 + 12 + 12, `${limiter.asked.length}`);
});

describe("the expected wait is the actual one", () => {
  for (const policy of [
    onePerSecond,
    { algorithm: "token_bucket", capacity: 4, refillRate: 2 },
    { algorithm: "leaky_bucket", capacity: 2, leakRate: 3, per: "2s" },
    { algorithm: "fix_window", limit: 3, scale: "10s" },
    { algorithm: "fix_window_per_key", limit: 3, scale: "10s" },
    { algorithm: "sliding_window", limit: 3, scale: "10s" },
  ])
    test(policy.algorithm, async () => {
      const { time, limiter, throttle } = start(policy);
      // Another process has used it a while ago.
      limiter.inner.hit("api", 2);
      await time.pass(300);
      const began = time.now;
      const expected = [];
      const passed = [];
      for (let number = 0; number < 9; number += 1)
        throttle
          .acquire({
            key: "api",
            onChange: ({ position, wait }) => {
              // The last word before any waits are over: at first it is not yet known when the next one is denied until.
              if (time.now === began) expected[number] = wait;
              assert.ok(position >= 1);
            },
          })
          .then(() => {
            passed[number] = time.now - began;
          });
      await settled();
      const before = passed.filter((at) => at === 0).length;
      await time.pass(60_000);
      const sure = policy.algorithm === "sliding_window" ? before + 1 : 9;
      for (let number = before; number < sure; number += 1)
        assert.ok(
          Math.abs(expected[number] - passed[number]) <= 2,
          `${number}: ${expected[number]} and ${passed[number]}`,
        );
    });

  test("is not known of a limiter that does not tell its policies", async () => {
    const time = new FakeTime();
    const { policies, ...limiter } = elsewhere(time, onePerSecond);
    const throttle = new Throttle({ limiter, clock: time.clock, timer: time.timer });
    await throttle.acquire();
    const places = [];
    throttle.acquire({ onChange: (place) => places.push(place) });
    await settled();
    assert.deepEqual(places, [{ position: 1, wait: undefined }]);
    assert.equal(policies.length, 1);
    await time.pass(1_000);
  });
});

test("signals, maxWait, maxQueue, priorities, tenants and holds work as in one process", async () => {
  const { time, throttle, done, wait } = start(onePerSecond, { maxQueue: 6 });
  const leaving = new AbortController();
  wait("now");
  await settled();
  wait("a1", { tenant: "a" });
  wait("a2", { tenant: "a" });
  wait("b1", { tenant: "b" });
  wait("left", { signal: leaving.signal });
  wait("late", { maxWait: 500 });
  wait("first", { priority: 1 });
  wait("full");
  await settled();
  leaving.abort("left");
  throttle.hold("", 1_500);
  await time.pass(9_000);
  assert.deepEqual(done, [
    "now 0",
    "full queue_full",
    "left left",
    "late max_wait",
    "first 1500",
    "a1 2500",
    "b1 3500",
    "a2 4500",
  ]);
  assert.deepEqual([throttle.pending, time.timers], [0, 0]);
});

describe("a limiter that fails", () => {
  test("rejects that call only", async () => {
    const time = new FakeTime();
    const inner = elsewhere(time, onePerSecond);
    let count = 0;
    const hit = async (...args) => {
      count += 1;
      if (count === 2) throw new Error("no connection");
      return inner.hit(...args);
    };
    const throttle = new Throttle({ limiter: { hit }, clock: time.clock, timer: time.timer });
    const all = Promise.allSettled([1, 2, 3].map(() => throttle.acquire()));
    await time.pass(1_000);
    assert.deepEqual(
      (await all).map(({ status, reason }) => reason?.message ?? status),
      ["fulfilled", "no connection", "fulfilled"],
    );
  });

  for (const [what, decision] of Object.entries({
    nothing: undefined,
    "a text": "yes",
    "a denial without a wait": { allowed: false },
    "a denial with a wait of 0": { allowed: false, retryAfter: 0 },
    "a denial with a wait that is no number": { allowed: false, retryAfter: Number.NaN },
  }))
    test(`returns ${what}: an error, and it is not asked again`, async () => {
      let asked = 0;
      const hit = async () => {
        asked += 1;
        return decision;
      };
      const throttle = new Throttle({ limiter: { hit } });
      await assert.rejects(throttle.acquire(), { code: "invalid_operation" });
      assert.equal(asked, 1);
    });

  test("returns a denial with hostile numbers: a wait without a place in time", async () => {
    for (const numbers of [
      {},
      { limit: Number.NaN, remaining: "2" },
      { limit: -1, remaining: 1e300 },
      { limit: 1e300 },
    ]) {
      const time = new FakeTime();
      const answers = [
        { allowed: false, retryAfter: 5, policy: "token_bucket", ...numbers },
        { allowed: true },
      ];
      const limiter = { policies: [onePerSecond], hit: async () => answers.shift() };
      const throttle = new Throttle({ limiter, clock: time.clock, timer: time.timer });
      const places = [];
      const done = throttle.acquire({ onChange: (place) => places.push(place) });
      await time.pass(5);
      assert.equal((await done).allowed, true);
      assert.deepEqual(places, [{ position: 1, wait: undefined }]);
    }
  });

  test("returns a decision whose wait changes each time it is read", async () => {
    let [asked, read] = [0, 0];
    const hit = async () => {
      asked += 1;
      return {
        allowed: asked > 3,
        get retryAfter() {
          read += 1;
          return read % 2 === 1 ? 10 : 0;
        },
      };
    };
    const time = new FakeTime();
    const throttle = new Throttle({ limiter: { hit }, clock: time.clock, timer: time.timer });
    const waiting = throttle.acquire().catch(({ code }) => code);
    await time.pass(9);
    assert.equal(asked, 1);
    await time.pass(1_000);
    assert.equal(await waiting, "invalid_operation");
    assert.equal(asked, 2);
  });

  test("throws at once, or returns a thenable", async () => {
    const broken = new Throttle({
      limiter: {
        hit() {
          throw new Error("broken");
        },
      },
    });
    await assert.rejects(broken.acquire(), /^Error: broken$/);
    const hit = () => ({
      // biome-ignore lint/suspicious/noThenProperty: it is what is tested.
      then: (resolve) => resolve({ allowed: true, retryAfter: 0 }),
    });
    assert.equal((await new Throttle({ limiter: { hit } }).acquire()).allowed, true);
  });
});

describe("run", () => {
  const running = [{ name: "running", algorithm: "concurrency", limit: 2 }];

  test("reserves elsewhere, and settles what the work says", async () => {
    const { time, limiter, throttle } = start({
      algorithm: "fix_window",
      limit: 100,
      scale: "1h",
      name: "tokens",
    });
    const result = await throttle.run(
      async ({ decision, settle }) => {
        assert.equal(decision.allowed, true);
        assert.equal(limiter.inner.get("user"), 40);
        assert.equal(await settle(7), "settled");
        return "done";
      },
      { key: "user", cost: 40, ttl: "2m" },
    );
    assert.equal(result, "done");
    assert.equal(limiter.inner.get("user"), 7);
    await assert.rejects(
      throttle.run(() => Promise.reject(new Error("broken")), { key: "user", cost: 20, cancelOnThrow: true }),
      /broken/,
    );
    assert.equal(limiter.inner.get("user"), 7);
    assert.equal(time.timers, 0);
  });

  test("of costs by policy, and never more at once than the limiter allows", async () => {
    const { time, throttle } = start(
      [...running, { name: "tokens", algorithm: "fix_window", limit: 100, scale: "1h" }],
      { latency: 3 },
    );
    let [now, most] = [0, 0];
    const all = Array.from({ length: 7 }, () =>
      throttle.run(
        async () => {
          now += 1;
          most = Math.max(most, now);
          await new Promise((resolve) => time.timer(resolve, 50));
          now -= 1;
        },
        { cost: { tokens: 5 } },
      ),
    );
    await time.pass(1_000);
    await Promise.all(all);
    assert.equal(most, 2);
    await assert.rejects(throttle.acquire(), { code: "reserve_only" });
  });

  test("a call that gives up while it is reserved keeps nothing", async () => {
    const { time, limiter, throttle } = start(running, { latency: 10 });
    const leaving = new AbortController();
    const gone = throttle.run(() => "ran", { key: "a", signal: leaving.signal });
    await settled();
    leaving.abort("left");
    await assert.rejects(gone, (reason) => reason === "left");
    await time.pass(20);
    assert.equal(limiter.inner.get("a"), 0);
    const ran = throttle.run(() => "ran", { key: "a" });
    await time.pass(20);
    assert.equal(await ran, "ran");
  });

  test("a settlement that fails does not lose the result of the work", async () => {
    const time = new FakeTime();
    const decision = { allowed: true, retryAfter: 0 };
    const settle = () => Promise.reject(new Error("no connection"));
    const limiter = { hit: async () => decision, reserve: async () => ({ decision, allowed: true, settle }) };
    const throttle = new Throttle({ limiter, clock: time.clock, timer: time.timer });
    assert.equal(await throttle.run(() => "done"), "done");
    await assert.rejects(
      throttle.run(({ settle }) => settle(1)),
      /no connection/,
    );
    await assert.rejects(
      new Throttle({ limiter: { hit: limiter.hit } }).run(() => 1),
      {
        code: "invalid_operation",
        message: "run: the limiter has no reserve; use acquire",
      },
    );
  });
});

test("throttledFetch and StoreLimiter", async () => {
  const rows = new Map();
  const store = {
    get: async (key) => rows.get(key) ?? null,
    swap: async (key, old, next) => {
      if ((rows.get(key) ?? null) !== old) return false;
      rows.set(key, next);
      return true;
    },
  };
  const limiter = new StoreLimiter({ algorithm: "fix_window_per_key", limit: 2, scale: "1h" }, { store });
  const ask = throttledFetch({ limiter, maxWait: 0, fetch: async () => new Response("") });
  for (const status of [200, 200]) assert.equal((await ask("https://api.example.com/")).status, status);
  await assert.rejects(ask("https://api.example.com/"), { code: "max_wait" });
  assert.equal((await ask("https://other.example.com/")).status, 200);
});

test("an invalid limiter or option is an error that names it", () => {
  const { code } = { code: "invalid_option" };
  const counting = new RateLimiter({ algorithm: "fix_window", limit: 1, scale: 1_000, denied: "count" });
  for (const options of [
    { limiter: undefined },
    { limiter: null },
    { limiter: {} },
    { limiter: counting },
    { limiter: { hit: async () => {} }, shared: "tabs" },
    { limiter: { hit: async () => {} }, learn: true },
    { limiter: { hit: async () => {} }, maxqueue: 5 },
  ])
    assert.throws(() => new Throttle(options), { code });
});

test("disposed of, it asks no more", async () => {
  const { limiter, throttle } = start();
  await throttle.acquire();
  throttle[Symbol.dispose]();
  await assert.rejects(throttle.acquire(), { code: "disposed" });
  assert.equal(limiter.asked.length, 1);
});
