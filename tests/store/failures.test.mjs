// Stores that throw, are late, are stale, lose replies or lie: never more than the limit, and typed errors.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { RateLimiter } from "tollgate";
import { StoreLimiter } from "tollgate/store";
import { elapse } from "../lib/elapse.mjs";
import { seeded } from "../lib/random.mjs";
import { distant, memoryStore } from "./lib/stores.mjs";

const start = 1_800_000_000_000;
const clock = () => start;
const policy = { algorithm: "fix_window", limit: 3, scale: "1h" };
const limiterOver = (store, options = {}) => new StoreLimiter(policy, { store, clock, ...options });
const never = new Promise(() => {});

/** Lets promises that are due go on. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a store that throws", () => {
  const cause = new Error("connection refused");
  const throwing = {
    "at once in get": (store) => ({ ...store, get: () => assert.fail(cause) }),
    "later in get": (store) => ({ ...store, get: async () => assert.fail(cause) }),
    "at once in swap": (store) => ({ ...store, swap: () => assert.fail(cause) }),
    "later in swap": (store) => ({ ...store, swap: async () => assert.fail(cause) }),
  };
  for (const [name, hostile] of Object.entries(throwing))
    test(name, async () => {
      const store = hostile(memoryStore(clock));
      const limiter = limiterOver(store);
      await assert.rejects(limiter.hit("key"), { name: "TollgateError", code: "unanswered", cause });
      await assert.rejects(limiter.reserve("key"), { code: "unanswered" });
      await assert.rejects(limiter.inc("key"), { code: "unanswered" });
      await assert.rejects(
        limiter.hit("key"),
        /failed for "key": .*connection refused; see docs\/own-store\.md$/,
      );
      assert.equal(limiter.stats.failed, 4);
      assert.equal((await limiterOver(store, { onError: "allow" }).hit("key")).reason, "error");
      assert.equal((await limiterOver(store, { onError: "allow" }).hit("key")).allowed, true);
      const { allowed, retryAfter, policy } = await limiterOver(store, { onError: "deny" }).hit("key");
      assert.deepEqual([allowed, retryAfter, policy], [false, 1_000, "fix_window"]);
      const reserving = limiterOver(store, { onError: "deny" });
      assert.equal((await reserving.reserve("key")).allowed, false);
      await assert.rejects(reserving.set("key", 1), { code: "unanswered" });
      assert.equal(reserving.stats.decidedWithout, 1);
    });

  test("a fallback decides, and has the reservations that it granted", async () => {
    const store = throwing["later in get"](memoryStore(clock));
    const fallback = new RateLimiter(policy, { clock });
    const limiter = limiterOver(store, { fallback });
    const reservation = await limiter.reserve("key", 2, { ttl: "1m" });
    assert.equal(reservation.allowed, true);
    assert.equal((await limiter.hit("key")).allowed, true);
    assert.equal((await limiter.hit("key")).allowed, false);
    assert.equal((await limiter.peek("key")).allowed, false);
    assert.equal(await reservation.settle(0), "settled");
    assert.equal((await limiter.hit("key", 2)).allowed, true);
    assert.equal(fallback.get("key"), 3);
  });

  test("an error of the caller is never decided by onError or a fallback", async () => {
    const store = throwing["later in get"](memoryStore(clock));
    const limiter = limiterOver(store, { onError: "allow", fallback: new RateLimiter(policy) });
    await assert.rejects(limiter.hit("key", -1), { code: "invalid_cost" });
    await assert.rejects(limiter.hit(""), { code: "invalid_key" });
    await assert.rejects(limiter.reserve("key", 1, { ttl: 0 }), { code: "invalid_option" });
  });
});

describe("a store that is late", () => {
  test("get: the operation fails, is not performed later, and blocks no other", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const store = memoryStore(clock);
    let reply;
    let isLate = true;
    const limiter = limiterOver(
      {
        get: (key) =>
          isLate ? new Promise((resolve) => (reply = () => resolve(store.get(key)))) : store.get(key),
        swap: store.swap,
      },
      { timeout: "1s" },
    );
    const first = assert.rejects(limiter.hit("key"), {
      code: "unanswered",
      message: 'the store did not answer for "key" within 1000 ms; see docs/own-store.md',
    });
    await turn();
    const second = assert.rejects(limiter.hit("key"), { code: "unanswered" });
    await elapse(t.mock.timers, 1_100);
    await Promise.all([first, second]);
    isLate = false;
    assert.equal((await limiter.hit("key")).count, 1);
    reply();
    await turn();
    assert.equal(await limiter.get("key"), 1);
    assert.equal(limiter.stats.swaps, 1);
  });

  test("swap: the operation may have been counted, and is not counted twice", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const store = memoryStore(clock);
    let isLate = true;
    const limiter = limiterOver({
      get: store.get,
      swap(...args) {
        const swapped = store.swap(...args);
        return isLate ? never : swapped;
      },
    });
    const failed = assert.rejects(limiter.hit("key"), { code: "unanswered" });
    await turn();
    const waiting = limiter.hit("key");
    await turn();
    await elapse(t.mock.timers, 1_000);
    const later = limiter.hit("key");
    isLate = false;
    // The first is given up, and then no longer blocks those that wait for it.
    await elapse(t.mock.timers, 1_000);
    await failed;
    assert.deepEqual([(await waiting).count, (await later).count], [2, 3]);
  });

  test("an operation that waits for one that hangs has a time limit of its own", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const limiter = limiterOver({ get: () => never, swap: () => never }, { timeout: 100, onError: "deny" });
    const all = ["hit", "peek"].map((operation) => limiter[operation]("key"));
    await turn();
    await elapse(t.mock.timers, 50);
    all.push(limiter.hit("key"));
    await elapse(t.mock.timers, 60);
    assert.deepEqual(
      (await Promise.all(all.slice(0, 2))).map(({ reason }) => reason),
      ["error", "error"],
    );
    await elapse(t.mock.timers, 60);
    assert.equal((await all[2]).reason, "error");
  });
});

describe("a store that lies", () => {
  test("false, though it stored the value: the hit is counted once", async () => {
    const store = memoryStore(clock);
    const limiter = limiterOver({ get: store.get, swap: (...args) => store.swap(...args) && false });
    const decisions = await Promise.all(Array.from({ length: 5 }, () => limiter.hit("key")));
    assert.deepEqual(
      decisions.map(({ allowed }) => allowed),
      [true, true, true, false, false],
    );
    assert.equal(await limiter.get("key"), 3);
    const reservation = await limiterOver(store).reserve("other", 2);
    assert.equal(await limiter.settle(reservation.id, 1), "settled");
    assert.equal(await limiter.get("other"), 1);
  });

  test("a client that sends each swap twice, and returns the second result", async () => {
    const store = memoryStore(clock);
    const limiter = limiterOver({
      get: store.get,
      swap: (...args) => {
        store.swap(...args);
        return store.swap(...args);
      },
    });
    for (let hit = 0; hit < 5; hit++) assert.equal((await limiter.hit("key")).allowed, hit < 3);
    assert.equal(await limiter.get("key"), 3);
    // A swap that deletes leaves no tag by which it could be recognized.
    assert.equal(await limiter.reset("key"), true);
    assert.equal(await limiter.reset("key"), false);
    assert.equal(await limiter.get("key"), 0);
  });

  for (const result of [undefined, null, 0, 1, "true", { rowCount: 1 }, []])
    test(`swap returns ${JSON.stringify(result)}`, async () => {
      const store = memoryStore(clock);
      const limiter = limiterOver({ get: store.get, swap: async () => result }, { onError: "allow" });
      await assert.rejects(limiter.hit("key"), {
        code: "invalid_option",
        message: /^store: swap returned .*; return true if it stored the value, and false if not$/,
      });
    });

  test("swap is always false: a typed error after so many tries, and onError decides", async () => {
    const store = memoryStore(clock);
    const hostile = { get: store.get, swap: () => false };
    const limiter = limiterOver(hostile, { maxTries: 3 });
    await assert.rejects(limiter.hit("key"), {
      code: "contended",
      message: 'others changed "key" during each of 3 tries to swap its value; see docs/own-store.md',
    });
    const { gets, swaps, conflicts, failed } = limiter.stats;
    assert.deepEqual([gets, swaps, conflicts, failed], [3, 3, 3, 1]);
    assert.equal((await limiterOver(hostile, { maxTries: 1, onError: "deny" }).hit("key")).reason, "error");
  });

  test("get is stale: denials may be, but no more than the limit is allowed", async () => {
    const store = memoryStore(clock);
    const random = seeded(7);
    const seen = new Map();
    /** Returns a value that the key has or had. */
    const stale = {
      get(key) {
        const all = seen.get(key) ?? [];
        seen.set(key, [...all, store.get(key)]);
        return seen.get(key).at(-1 - random(Math.min(3, seen.get(key).length)));
      },
      swap: store.swap,
    };
    const fleet = Array.from({ length: 4 }, () => limiterOver(stale, { maxTries: 10, onError: "deny" }));
    let allowed = 0;
    for (let round = 0; round < 20; round++)
      for (const { allowed: is } of await Promise.all(fleet.map((limiter) => limiter.hit("key"))))
        allowed += Number(is);
    assert.equal(allowed, 3);
  });
});

test("replies are lost, calls fail and are late, at random: never more than the limit, and all that was allowed counts", async () => {
  const limit = 40;
  for (let seed = 1; seed <= 20; seed++) {
    const store = memoryStore(clock);
    const random = seeded(seed);
    const hostile =
      (method) =>
      async (key, ...args) => {
        if (random(10) === 0) throw new Error("refused");
        const result = await distantly[method](key, ...args);
        if (random(10) === 0) throw new Error("the reply was lost");
        // As if the call was sent twice.
        return random(10) === 0 && method === "swap" ? store.swap(key, ...args) : result;
      };
    const distantly = distant(store, seed);
    const numbers = { ...policy, limit };
    const fleet = Array.from(
      { length: 4 },
      () => new StoreLimiter(numbers, { store: { get: hostile("get"), swap: hostile("swap") }, clock }),
    );
    let [allowed, failed] = [0, 0];
    await Promise.all(
      fleet.map(async (limiter) => {
        for (let hit = 0; hit < 30; hit++) {
          const decision = await limiter.hit("key").catch(({ code }) => assert.equal(code, "unanswered"));
          if (decision === undefined) failed++;
          else if (decision.allowed) allowed++;
        }
      }),
    );
    const counted = await new StoreLimiter(numbers, { store, clock }).get("key");
    assert.ok(allowed <= counted && counted <= limit, `${allowed} allowed, ${counted} counted`);
    assert.ok(failed > 0, "the store never failed");
    // Each failed operation may have been counted.
    assert.ok(counted <= allowed + failed, `${counted} counted, ${allowed} allowed, ${failed} failed`);
  }
});

describe("a value that no limiter wrote", () => {
  const state = (numbers, { algorithm = 0, open = [] } = {}) =>
    JSON.stringify({
      version: 4,
      rows: [["fix_window", [algorithm, 3_600_000, start + 3_600_000, numbers.length, ...numbers, ...open]]],
    });
  const values = {
    "an empty text": ["", "invalid_state"],
    "not JSON": ["hello", "invalid_state"],
    "JSON that was cut": [state([start, 1]).slice(0, -3), "invalid_state"],
    "null as a text": ["null", "invalid_state"],
    "a number": ["7", "invalid_state"],
    "a text": ['"text"', "invalid_state"],
    "a list": ["[]", "invalid_state"],
    "no version": ["{}", "invalid_state"],
    "a later version": ['{"version":5,"rows":[]}', "unsupported_version"],
    "states that are none": ['{"version":4,"rows":[7]}', "invalid_state"],
    "negative numbers": [state([start, -1]), "invalid_state"],
    "too few numbers": [state([start]), "invalid_state"],
    fractions: [state([start, 0.5]), "invalid_state"],
    "numbers that are too large": [state([start, 2 ** 60]), "invalid_state"],
    "an algorithm that is none": [state([start, 1], { algorithm: "magic" }), "invalid_state"],
    "a reservation that is none": [state([start, 1], { open: [1, 2] }), "invalid_state"],
    "an object instead of a text": [{ version: 4, rows: [] }, "invalid_state"],
    "bytes instead of a text": [Buffer.from(state([start, 1])), "invalid_state"],
    "a number instead of a text": [0, "invalid_state"],
    "false instead of a text": [false, "invalid_state"],
  };
  for (const [name, [text, code]] of Object.entries(values))
    test(`${name}: ${code}, of this key alone, and it stays as it is`, async () => {
      const store = memoryStore(clock);
      store.put("broken", text);
      const limiter = limiterOver(store);
      const [broken, whole] = [limiter.hit("broken"), limiter.hit("whole")];
      await assert.rejects(broken, {
        name: "TollgateError",
        code,
        message: /^the value of "broken" in the store/,
      });
      assert.equal((await whole).allowed, true);
      for (const operation of ["peek", "get", "inc", "reset", "reserve"])
        await assert.rejects(limiter[operation]("broken"), { code });
      assert.equal(store.values.get("broken").text, text);
      assert.equal((await limiterOver(store, { onError: "deny" }).hit("broken")).reason, "error");
    });
});

describe("clocks", () => {
  test("one that returns no time, or throws, fails the operation and changes nothing", async () => {
    for (const now of [Number.NaN, -1, "1", undefined, Number.POSITIVE_INFINITY]) {
      const store = memoryStore(clock);
      const limiter = limiterOver(store, { clock: () => now, onError: "allow" });
      await assert.rejects(limiter.hit("key"), { code: "invalid_time" });
      assert.equal(store.values.size, 0);
    }
    const broken = limiterOver(memoryStore(clock), { clock: () => assert.fail("no clock") });
    await assert.rejects(broken.hit("key"), /no clock/);
  });

  test("processes whose clocks differ by less than a period admit at most what two windows do", async () => {
    const sliding = { algorithm: "sliding_window", limit: 5, scale: "1m" };
    let now = start;
    const store = memoryStore(() => now);
    const fleet = [-20_000, 0, 20_000].map(
      (skew) => new StoreLimiter(sliding, { store, clock: () => now + skew }),
    );
    const allowed = [];
    for (let second = 0; second < 300; second++, now += 1_000)
      for (const limiter of fleet) if ((await limiter.hit("key")).allowed) allowed.push(now);
    // Within a minute by any of the clocks, less the 40 s between the first and the last.
    for (const from of allowed)
      assert.ok(allowed.filter((at) => at >= from && at < from + 20_000).length <= 5, `from ${from - start}`);
    assert.ok(allowed.length >= 25, `${allowed.length} allowed in five minutes`);
  });

  test("a clock that steps back by a little stands still, and one by hours does not freeze a key", async () => {
    let now = start;
    const store = memoryStore(() => now);
    const limiter = new StoreLimiter(
      { ...policy, algorithm: "fix_window_per_key" },
      { store, clock: () => now },
    );
    await limiter.hit("key", 3);
    now -= 60_000;
    assert.equal((await limiter.hit("key")).allowed, false);
    now -= 48 * 3_600_000;
    assert.equal((await limiter.hit("key")).retryAfter, 3_600_000);
    now += 3_600_000;
    assert.equal((await limiter.hit("key")).allowed, true);
  });
});
