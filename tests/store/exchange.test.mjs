// What a limiter asks of its store: one get and at most one swap for all operations of a tick, and nothing needless.

import assert from "node:assert/strict";
import test from "node:test";
import { step } from "tollgate";
import { hitAll, StoreLimiter } from "tollgate/store";
import { memoryStore } from "./lib/stores.mjs";

const start = 1_800_000_000_000;
const policy = { algorithm: "fix_window_per_key", limit: 3, scale: "1m" };

/** A limiter over a store, and what the store was asked. */
function setUp(policies = policy, options = {}) {
  const time = { now: start };
  const clock = () => time.now;
  const store = memoryStore(clock);
  const limiter = new StoreLimiter(policies, { store, clock, ...options });
  const asked = () => store.calls.splice(0).map(([method]) => method);
  return { time, store, limiter, asked };
}

test("a hit is one get and one swap, with the ttl of what was used", async () => {
  const { time, store, limiter } = setUp();
  await limiter.hit("key");
  const [[get, key], [swap, swapped, before, after, ttl]] = store.calls.splice(0);
  assert.deepEqual([get, key, swap, swapped, before, ttl], ["get", "key", "swap", "key", null, 60_000]);
  time.now += 15_000.5;
  await limiter.hit("key");
  const [, [, , former, , left]] = store.calls;
  assert.deepEqual([former, left], [after, 45_000]);
});

test("the value is JSON in ASCII, and a state that step reads", async () => {
  const { store, limiter } = setUp({ ...policy, name: "login attempts" });
  await limiter.hit("ключ", 2);
  const text = store.values.get("ключ").text;
  assert.match(text, /^[\x20-\x7e]+$/);
  const { tag, ...state } = JSON.parse(text);
  assert.match(tag, /^[0-9a-f]{16}$/);
  const stepped = step({ ...policy, name: "login attempts" }, state, "get", 0, start);
  assert.equal(stepped.value, 2);
});

test("hits of one tick share a swap; those of the next tick wait for it and share the next", async () => {
  const { limiter, asked } = setUp({ ...policy, limit: 1_000 });
  const first = Array.from({ length: 300 }, () => limiter.hit("key"));
  await Promise.resolve();
  const second = Array.from({ length: 300 }, () => limiter.hit("key"));
  const counts = (await Promise.all([...first, ...second])).map(({ count }) => count);
  assert.deepEqual(
    counts,
    Array.from({ length: 600 }, (_, at) => at + 1),
  );
  assert.deepEqual(asked(), ["get", "swap", "get", "swap"]);
  const { stats } = limiter;
  assert.deepEqual(stats, { operations: 600, gets: 2, swaps: 2, conflicts: 0, failed: 0, decidedWithout: 0 });
});

test("a flood of one key is a few swaps, and of many keys one each", async () => {
  const { limiter, asked } = setUp({ ...policy, limit: 10_000 });
  await Promise.all(Array.from({ length: 5_000 }, () => limiter.hit("key")));
  assert.deepEqual(asked(), Array.from({ length: 5 }, () => ["get", "swap"]).flat());
  await Promise.all(Array.from({ length: 100 }, (_, number) => limiter.hit(`key ${number}`)));
  assert.equal(asked().length, 200);
});

test("reads, denied hits and operations that change nothing write nothing", async () => {
  const { limiter, asked, time } = setUp();
  assert.equal(await limiter.reset("key"), false);
  assert.equal((await limiter.hit("key", 4)).allowed, false);
  assert.equal((await limiter.hit("key", 0)).allowed, true);
  assert.equal(await limiter.inc("key", 0), 0);
  await limiter.hit("key", 3);
  assert.deepEqual(asked(), ["get", "get", "get", "get", "get", "swap"]);
  await limiter.hit("key");
  await limiter.peek("key");
  await limiter.get("key");
  await limiter.expiresAt("key");
  await limiter.settle(`${"0".repeat(32)}.1.a.skey`);
  assert.deepEqual(asked(), ["get", "get", "get", "get", "get"]);
  // The state has ended, and the store has not deleted it.
  time.now += 60_000;
  assert.equal((await limiter.hit("key", 4)).allowed, false);
  assert.equal(await limiter.reset("key"), false);
  assert.deepEqual(asked(), ["get", "get"]);
});

test("denied hits that count are written", async () => {
  const { limiter, asked } = setUp({ ...policy, denied: "count" });
  for (let turn = 0; turn < 5; turn++) await limiter.hit("key");
  assert.equal(await limiter.get("key"), 5);
  assert.equal(asked().filter((method) => method === "swap").length, 5);
});

test("a state that had to follow the clock back is written, also by a denied hit, and once", async () => {
  const { limiter, asked, time } = setUp();
  await limiter.hit("key", 3);
  asked();
  time.now -= 3_600_000;
  assert.deepEqual((await limiter.hit("key")).retryAfter, 60_000);
  assert.deepEqual(asked(), ["get", "swap"]);
  assert.equal((await limiter.hit("key")).allowed, false);
  assert.deepEqual(asked(), ["get"]);
});

test("a key that is as if never used is deleted", async () => {
  const { limiter, store } = setUp();
  await limiter.hit("key");
  assert.equal(await limiter.reset("key"), true);
  assert.deepEqual(store.calls.at(-1).slice(3), [null, 0]);
  assert.equal(store.values.size, 0);
  await limiter.hit("key");
  await limiter.inc("key", -1);
  assert.equal(await limiter.get("key"), 0);
});

test("a store that never deletes changes no decision", async () => {
  const time = { now: start };
  const texts = new Map();
  const store = {
    get: (key) => texts.get(key),
    swap: (key, before, after) => (texts.get(key) ?? null) === before && Boolean(texts.set(key, after)),
  };
  const limiter = new StoreLimiter(policy, { store, clock: () => time.now });
  for (let window = 0; window < 3; window++) {
    for (let hit = 0; hit < 4; hit++) assert.equal((await limiter.hit("key")).allowed, hit < 3);
    time.now += 60_000;
  }
});

test("a prefix, and limiters of one prefix, whose policies differ in names", async () => {
  const { store, limiter } = setUp(policy, { prefix: "login:" });
  await limiter.hit("ann", 3);
  assert.deepEqual([...store.values.keys()], ["login:ann"]);
  const options = { store, clock: () => start, prefix: "login:" };
  const other = new StoreLimiter(
    { algorithm: "token_bucket", capacity: 2, refillRate: 1, per: "1h" },
    options,
  );
  assert.equal((await other.hit("ann", 2)).allowed, true);
  assert.equal((await limiter.hit("ann")).allowed, false);
  assert.equal((await other.hit("ann")).allowed, false);
  const elsewhere = new StoreLimiter(policy, { ...options, prefix: "" });
  assert.equal((await elsewhere.hit("ann")).allowed, true);
});

test("costs by policy, other numbers for a call, and the numbers that the call had when it was made", async () => {
  const { limiter } = setUp([
    { ...policy, name: "a" },
    { ...policy, name: "b", limit: 5 },
  ]);
  const costs = { a: 1, b: 4 };
  const first = limiter.hit("key", costs);
  costs.a = 9;
  assert.equal((await first).allowed, true);
  assert.deepEqual([await limiter.get("key", "a"), await limiter.get("key", "b")], [1, 4]);
  const denied = await limiter.hit("key", { b: 2 });
  assert.deepEqual([denied.allowed, denied.violated], [false, ["b"]]);
  const numbers = [
    { ...policy, name: "a" },
    { ...policy, name: "b", limit: 50 },
  ];
  const higher = limiter.hit("key", { b: 2 }, numbers);
  numbers[1].limit = 1;
  assert.equal((await higher).allowed, true);
});

test("reservations: any limiter settles, extends and cancels them by id, and their ends charge them", async () => {
  const { store, limiter, time } = setUp({ ...policy, limit: 10 });
  const other = new StoreLimiter({ ...policy, limit: 10 }, { store, clock: () => time.now });
  const reservation = await limiter.reserve("key: with a dot.", 4, { ttl: "10s" });
  assert.deepEqual([reservation.allowed, reservation.expiresAt], [true, start + 10_000]);
  assert.equal((await other.peek("key: with a dot.", 0)).remaining, 6);
  assert.equal(await other.extend(reservation.id, "20s"), "extended");
  assert.equal(await reservation.extend("30s"), "extended");
  assert.equal(reservation.expiresAt, start + 30_000);
  assert.equal(await other.settle(reservation.id, 3), "settled");
  assert.equal(await reservation.settle(), "closed");
  assert.equal(await limiter.get("key: with a dot."), 3);

  const forgotten = await limiter.reserve("key: with a dot.", 5, { ttl: "1s" });
  const cancelled = await limiter.reserve("key: with a dot.", 2);
  assert.equal(await cancelled.cancel(), "settled");
  time.now += 1_000;
  assert.equal(await other.get("key: with a dot."), 8);
  assert.equal(await forgotten.settle(1), "expired");
  const denied = await limiter.reserve("key: with a dot.", 3);
  assert.deepEqual([denied.allowed, denied.id, denied.expiresAt], [false, "", 0]);
  {
    await using _scope = await limiter.reserve("key: with a dot.", 2);
  }
  assert.equal(await other.get("key: with a dot."), 10);
});

test("a key has at most 1,024 open reservations", async () => {
  const { limiter } = setUp({ algorithm: "fix_window", limit: 5_000, scale: "1d" });
  const all = await Promise.all(Array.from({ length: 1_026 }, () => limiter.reserve("key")));
  assert.equal(all.filter(({ allowed }) => allowed).length, 1_024);
  assert.equal(all.at(-1).decision.reason, "full");
});

test("hitAll is all or nothing: each key is charged at once, and given back if another denies", async () => {
  const { store, limiter: users, time } = setUp({ ...policy, limit: 2 });
  const teams = new StoreLimiter({ ...policy, limit: 3, name: "team" }, { store, clock: () => time.now });
  const both = () =>
    hitAll([
      { limiter: users, key: "ann" },
      { limiter: teams, key: "red", cost: 2 },
    ]);
  // After the head of a row and the two numbers of a window, a part of a reservation has ten.
  const parts = (key) => (JSON.parse(store.values.get(key).text).rows[0][1].length - 6) / 10;
  assert.deepEqual((await both()).allowed, true);
  assert.deepEqual([await users.get("ann"), await teams.get("red")], [1, 2]);
  assert.equal(parts("ann"), 0);
  const second = await both();
  assert.deepEqual([second.allowed, second.decisions.map(({ allowed }) => allowed)], [false, [true, false]]);
  assert.deepEqual([await users.get("ann"), await teams.get("red")], [1, 2]);
  // The undone hit is remembered for as long as it could be undone again.
  assert.equal(parts("ann"), 1);
  time.now += 10_000;
  assert.equal((await users.hit("ann")).allowed, true);
  assert.equal(parts("ann"), 0);
});

test("an undo whose reply is lost is repeated, and gives back once", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const isPerformed of [true, false]) {
    const time = { now: start };
    const inner = memoryStore(() => time.now);
    let swaps = 0;
    const store = {
      get: (key) => inner.get(key),
      swap(...args) {
        swaps += 1;
        if (args[0] !== "ann" || swaps !== 2) return inner.swap(...args);
        if (isPerformed) inner.swap(...args);
        throw new Error("broken");
      },
    };
    const limiterOf = (limit) => new StoreLimiter({ ...policy, limit }, { store, clock: () => time.now });
    const [users, teams] = [limiterOf(5), limiterOf(1)];
    const hits = [
      { limiter: users, key: "ann", cost: 2 },
      { limiter: teams, key: "red", cost: 2 },
    ];
    assert.equal((await hitAll(hits)).allowed, false);
    assert.equal(await users.get("ann"), isPerformed ? 0 : 2);
    await users.inc("ann", 3);
    t.mock.timers.tick(100);
    while (swaps < (isPerformed ? 3 : 4)) await new Promise((resolve) => setImmediate(resolve));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await users.get("ann"), 3);
  }
});

test("a process that goes away before it undoes leaves the key charged until the hit ends", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { store, limiter: users, time } = setUp({ ...policy, limit: 5 });
  const never = { get: () => new Promise(() => {}), swap: () => new Promise(() => {}) };
  const gone = new StoreLimiter(policy, { store: never });
  void hitAll([
    { limiter: users, key: "ann", cost: 5 },
    { limiter: gone, key: "red" },
  ]);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal((await users.hit("ann")).allowed, false);
  time.now += 60_000;
  assert.equal((await users.hit("ann", 5)).allowed, true);
  assert.equal(store.values.size, 1);
});

test("disposed of, it calls the store no more", async () => {
  const { limiter, asked } = setUp();
  limiter[Symbol.dispose]();
  limiter[Symbol.dispose]();
  await assert.rejects(limiter.hit("key"), { code: "disposed" });
  assert.deepEqual(asked(), []);
});
