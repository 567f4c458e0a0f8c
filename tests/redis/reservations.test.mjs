// Amounts that are set aside in Redis, and settled by anyone.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { hitAll, RedisLimiter } from "tollgate/redis";
import { startFleet } from "./lib/fleet.mjs";
import { allowed, times, withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

let fleet;
const setting = withServer({
  start: async ({ server }) => {
    fleet = await startFleet(server.port, 10);
  },
  stop: () => fleet.stop(),
});
const { options, value } = setting;

const policies = [
  { name: "rpm", algorithm: "sliding_window", limit: 60, scale: "1h" },
  { name: "tpm", algorithm: "token_bucket", capacity: 9_000, refillRate: 1, per: "1d" },
  { name: "running", algorithm: "concurrency", limit: 2, ttl: "1h" },
];

const counts = (limiter, key) => Promise.all(policies.map(({ name }) => limiter.get(key, name)));

describe("a reservation", () => {
  test("by a call's numbers is charged by them, also by a process that read a shortened log", async () => {
    const own = { algorithm: "token_bucket", capacity: 100, refillRate: 100, per: "1d" };
    const call = { ...own, capacity: 10, refillRate: 1 };
    const given = options();
    const limiter = new RedisLimiter(own, given);
    const { id } = await limiter.reserve("plan:42", 10, { policies: call });
    for (const _ of Array(100)) await limiter.extend(id, "1h");
    assert.match((await value(given)).text, /^b[^|]*\|#[^|]*\|[^|]*=[^|]*\|[~!]/);
    const other = new RedisLimiter(own, given);
    assert.equal(await other.settle(id), "settled");
    for (const one of [limiter, other]) assert.equal((await one.peek("plan:42", 1, call)).allowed, false);
  });

  test("counts until it is settled, in every process", async () => {
    const given = options();
    const [limiter, other] = [new RedisLimiter(policies, given), new RedisLimiter(policies, given)];
    const reservation = await limiter.reserve("user:42", { tpm: 4_000 }, { ttl: "2m" });
    assert.equal(reservation.allowed, true);
    assert.deepEqual(await counts(other, "user:42"), [1, 5_000, 1]);
    // By its id, elsewhere.
    assert.equal(await other.settle(reservation.id, { tpm: 1_234 }), "settled");
    assert.deepEqual(await counts(limiter, "user:42"), [1, 7_766, 0]);
    assert.equal(await reservation.settle(), "closed");
    assert.equal(await other.cancel(reservation.id), "closed");
  });

  test("that is not settled is charged at its end, and a slot is released", async () => {
    using time = new ControlledTime(setting.redis);
    const limiter = new RedisLimiter(policies, options({ client: time.client }));
    const reservation = await limiter.reserve("a", { tpm: 100 }, { ttl: 5_000 });
    assert.equal(reservation.expiresAt, time.now + 5_000);
    time.now += 4_999;
    assert.deepEqual(await counts(limiter, "a"), [1, 8_900, 1]);
    assert.equal(await reservation.extend("10s"), "extended");
    assert.equal(reservation.expiresAt, time.now + 10_000);
    time.now += 9_999;
    assert.deepEqual(await counts(limiter, "a"), [1, 8_900, 1]);
    time.now += 1;
    assert.deepEqual(await counts(limiter, "a"), [1, 8_900, 0]);
    assert.equal(await reservation.settle(0), "expired");
    assert.equal(await limiter.extend(reservation.id, "1s"), "expired");
  });

  test("is part of the base, and survives a Redis that lost everything", async () => {
    const given = options();
    const limiter = new RedisLimiter(policies, given);
    const reservation = await limiter.reserve("a", { tpm: 100 });
    while (limiter.stats.bases === 0) await limiter.inc("a", 1, "tpm");
    assert.match((await value(given)).text, /^b[^|]*\|#[^|]*\|[^|]*=[^|]*\|[~!]/);
    const other = new RedisLimiter(policies, given);
    assert.equal(await other.get("a", "running"), 1);
    await setting.lose();
    assert.equal(await limiter.get("a", "running"), 1);
    assert.equal(await reservation.cancel(), "settled");
    assert.equal(await other.get("a", "running"), 0);
  });

  test("keeps its key alive until its end, and as long as what it is charged lasts", async () => {
    const given = options();
    const limiter = new RedisLimiter({ algorithm: "fix_window_per_key", limit: 9, scale: "1m" }, given);
    const { calls } = limiter.stats;
    await limiter.reserve("a", 1, { ttl: "1h" });
    const { key } = await value(given);
    assert.ok((await setting.redis.pttl(key)) > 7_200_000);
    // The time is asked for, the script is sent, and nothing else.
    assert.equal(limiter.stats.calls - calls, 2);
  });

  test("is one of 1,024 at the most", async () => {
    const wide = { algorithm: "fix_window", limit: 5_000, scale: "365d" };
    const limiter = new RedisLimiter(wide, options());
    const reservations = await times(1_026, () => limiter.reserve("a"));
    assert.equal(allowed(reservations), 1_024);
    assert.deepEqual(
      [reservations[1_025].decision.reason, reservations[1_025].decision.violated],
      ["full", []],
    );
    await reservations[5].cancel();
    assert.equal((await limiter.reserve("a")).allowed, true);
  });

  test("stays open when its key is reset, unless it is to be dropped", async () => {
    const limiter = new RedisLimiter(policies, options());
    const { id } = await limiter.reserve("a", { tpm: 10 });
    assert.equal(await limiter.reset("a"), true);
    assert.deepEqual(await counts(limiter, "a"), [1, 8_990, 1]);
    assert.equal(await limiter.reset("a", { reservations: true }), true);
    assert.deepEqual(await counts(limiter, "a"), [0, 9_000, 0]);
    assert.equal(await limiter.settle(id), "closed");
    await assert.rejects(limiter.reset("a", { reservations: 1 }), { code: "invalid_option" });
  });

  test("is charged in full when its scope ends", async () => {
    const limiter = new RedisLimiter({ algorithm: "fix_window", limit: 9, scale: "365d" }, options());
    {
      await using reservation = await limiter.reserve("a", 5);
      assert.equal(reservation.allowed, true);
    }
    {
      await using reservation = await limiter.reserve("a", 4);
      await reservation.settle(1);
    }
    assert.equal(await limiter.get("a"), 6);
  });

  test("by the numbers of a call", async () => {
    const window = { algorithm: "fix_window", limit: 5, scale: "365d" };
    const limiter = new RedisLimiter(window, options());
    const paying = { ...window, limit: 50 };
    assert.equal((await limiter.reserve("a", 20)).allowed, false);
    assert.equal((await limiter.reserve("a", 20, { policies: paying })).allowed, true);
    assert.equal(await limiter.get("a"), 20);
  });

  test("ends a denial that would hold", async () => {
    const limiter = new RedisLimiter({ algorithm: "fix_window", limit: 5, scale: "365d" }, options());
    const reservation = await limiter.reserve("a", 5);
    assert.equal((await limiter.hit("a")).allowed, false);
    assert.equal((await limiter.hit("a")).allowed, false);
    assert.equal(limiter.stats.localDenials, 0);
    await reservation.cancel();
    assert.equal((await limiter.hit("a")).allowed, true);
  });
});

describe("several keys", () => {
  const day = { algorithm: "fix_window", limit: 3, scale: "365d" };
  const slots = { algorithm: "concurrency", limit: 1 };

  test("are charged together, or not at all", async () => {
    const [users, teams] = [
      new RedisLimiter(day, options()),
      new RedisLimiter({ ...day, limit: 5 }, options()),
    ];
    const both = (user) =>
      hitAll([
        { limiter: users, key: user },
        { limiter: teams, key: "team", cost: 2 },
      ]);
    assert.equal((await both("a")).allowed, true);
    assert.equal((await both("b")).allowed, true);
    const { allowed, decisions } = await both("b");
    assert.deepEqual([allowed, decisions.map((decision) => decision.allowed)], [false, [true, false]]);
    assert.deepEqual([await users.get("b"), await teams.get("team")], [1, 4]);
  });

  test("on one key are one decision of the sum, at each place", async () => {
    using time = new ControlledTime(setting.redis);
    const limiter = new RedisLimiter({ ...day, limit: 10 }, options({ client: time.client }));
    const of = (...costs) => hitAll(costs.map((cost) => ({ limiter, key: "a", cost })));
    const never = await of(6, 6);
    assert.equal(never.allowed, false);
    assert.equal(never.decisions[0].retryAfter, Number.POSITIVE_INFINITY);
    assert.equal(never.decisions[1], never.decisions[0]);
    assert.equal(await limiter.get("a"), 0);
    const { calls } = limiter.stats;
    const { allowed, decisions } = await of(3, 4);
    assert.equal(limiter.stats.calls, calls + 1);
    assert.deepEqual([allowed, decisions.length, decisions[1].remaining], [true, 2, 3]);
    assert.equal(decisions[0].resetAfter, (await limiter.peek("a", 0)).resetAfter);
    assert.equal(await limiter.get("a"), 7);
    assert.equal((await of(2, 2)).allowed, false);
    await assert.rejects(of(2, -1), { code: "invalid_cost" });
    const other = { limiter, key: "a", policies: { ...day, limit: 20 } };
    await assert.rejects(hitAll([other, { limiter, key: "a" }]), { code: "policy_mismatch" });
    assert.equal((await hitAll([other, { ...other, cost: 12 }])).allowed, true);
    assert.equal(await limiter.get("a"), 20);
  });

  test("are charged as their hits are decided, and an undo is an entry", async () => {
    const given = options();
    const limiter = new RedisLimiter(day, given);
    assert.equal((await hitAll([{ limiter, key: "a" }])).allowed, true);
    assert.match((await value(given)).text, /y1!/);
    assert.equal((await limiter.hit("a")).count, 2);
    const other = new RedisLimiter({ ...day, limit: 1 }, options());
    const { allowed } = await hitAll([
      { limiter, key: "a" },
      { limiter: other, key: "b", cost: 2 },
    ]);
    assert.equal(allowed, false);
    assert.match((await value(given)).text, /u[0-9a-f]{16}\.[0-9a-z]+\.0:1!/);
    assert.deepEqual([await limiter.get("a"), await other.get("b")], [2, 0]);
    // Another process replays the same.
    assert.equal(await new RedisLimiter(day, given).get("a"), 2);
    const counting = new RedisLimiter(slots, options());
    await assert.rejects(hitAll([{ limiter: counting, key: "a" }]), { code: "reserve_only" });
  });

  test("an undo whose reply is lost is repeated, and gives back once", async () => {
    for (const isPerformed of [true, false]) {
      using time = new ControlledTime(setting.redis);
      let undos = 0;
      const client = {
        send: async (key, words) => {
          if (!words.some((word) => /u[0-9a-f]{16}\./.test(word))) return time.client.send(key, words);
          undos += 1;
          if (undos > 1) return time.client.send(key, words);
          if (isPerformed) await time.client.send(key, words);
          throw new Error("broken");
        },
      };
      const given = options({ client });
      const limiter = new RedisLimiter({ ...day, limit: 5 }, given);
      const full = new RedisLimiter({ ...day, limit: 1 }, options({ client: time.client }));
      const hits = [
        { limiter, key: "a", cost: 2 },
        { limiter: full, key: "b", cost: 2 },
      ];
      assert.equal((await hitAll(hits)).allowed, false);
      assert.equal(await limiter.get("a"), isPerformed ? 0 : 2);
      await limiter.inc("a", 3);
      // Redis's time stands still meanwhile: an undo is accepted for ten seconds.
      while (undos < 2) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(await limiter.get("a"), 3);
    }
  });

  test("are undone by costs and policies of the call", async () => {
    const bucket = { algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "365d", name: "tokens" };
    const given = options();
    const limiter = new RedisLimiter([{ ...day, limit: 10, name: "day" }, bucket], given);
    const full = new RedisLimiter({ ...day, limit: 1 }, options());
    const policies = [{ ...day, limit: 20, name: "day" }, bucket];
    for (const cost of [{ tokens: 4 }, { day: 0, tokens: 7 }, 3]) {
      const { allowed } = await hitAll([
        { limiter, key: "a", cost, policies },
        { limiter: full, key: "b", cost: 2 },
      ]);
      assert.equal(allowed, false);
    }
    assert.deepEqual([await limiter.get("a", "day"), await limiter.get("a", "tokens")], [0, 10]);
    const again = new RedisLimiter([{ ...day, limit: 10, name: "day" }, bucket], given);
    assert.equal(await again.get("a", "tokens"), 10);
  });

  test("under an exception that allows, nothing is charged or undone", async () => {
    const limiter = new RedisLimiter(day, options());
    const full = new RedisLimiter({ ...day, limit: 1 }, options());
    await limiter.except("a", { allow: true }, { for: "1d" });
    const { allowed } = await hitAll([
      { limiter, key: "a", cost: 9 },
      { limiter: full, key: "b", cost: 2 },
    ]);
    assert.deepEqual([allowed, await limiter.get("a")], [false, 0]);
  });
});

describe("errors", () => {
  test("of input", async () => {
    const limiter = new RedisLimiter(policies, options());
    await assert.rejects(limiter.hit("a"), { code: "reserve_only", message: /"running"/ });
    await assert.rejects(limiter.inc("a", 1, "running"), { code: "reserve_only" });
    await assert.rejects(limiter.set("a", 1, "running"), { code: "reserve_only" });
    await assert.rejects(limiter.reserve("a", -1), { code: "invalid_cost" });
    await assert.rejects(limiter.reserve("a", { other: 1 }), { code: "unknown_policy" });
    await assert.rejects(limiter.reserve("a", { rpm: "1" }), { code: "invalid_cost" });
    await assert.rejects(limiter.reserve("a", 1, { ttl: "25h" }), { code: "invalid_option" });
    await assert.rejects(limiter.reserve("a", 1, { tll: 1 }), { code: "invalid_option" });
    await assert.rejects(limiter.reserve(7), { code: "invalid_key" });
    for (const id of ["", "lost", 7, undefined]) {
      await assert.rejects(limiter.settle(id), { code: "invalid_reservation" });
      await assert.rejects(limiter.extend(id, "1s"), { code: "invalid_reservation" });
    }
    const { id } = await limiter.reserve("a", { tpm: 5 });
    await assert.rejects(limiter.settle(id, 5), { code: "invalid_cost" });
    await assert.rejects(limiter.extend(id, 0), { code: "invalid_option" });
    assert.equal(await limiter.settle(id), "settled");
    const numeric = new RateLimiter({ algorithm: "concurrency", limit: 1 }).reserve(7).id;
    await assert.rejects(limiter.settle(numeric), { code: "invalid_reservation" });
  });

  test("of a Redis that is away: the fallback reserves, and its reservations are settled there", async () => {
    const client = { send: () => Promise.reject(new Error("down")) };
    const limiter = new RedisLimiter(
      { algorithm: "concurrency", limit: 4 },
      options({ client, fallback: { share: 0.5 } }),
    );
    const reservations = await times(3, () => limiter.reserve("a"));
    assert.deepEqual(
      reservations.map((reservation) => reservation.allowed),
      [true, true, false],
    );
    assert.equal(await reservations[0].extend("1h"), "extended");
    assert.equal(await reservations[0].cancel(), "settled");
    assert.equal(await reservations[0].cancel(), "closed");
    assert.equal((await limiter.reserve("a")).allowed, true);
    const allowing = new RedisLimiter(policies, options({ client, onError: "allow" }));
    const reservation = await allowing.reserve("a");
    assert.deepEqual([reservation.allowed, reservation.id, await reservation.settle()], [true, "", "closed"]);
    assert.equal(reservation.decision.reason, "error");
    await assert.rejects(new RedisLimiter(policies, options({ client })).reserve("a"), {
      code: "unanswered",
    });
  });
});

describe("ten processes", () => {
  test("never hold more slots than there are, and each gets one in the end", async () => {
    const task = {
      work: "slots",
      policies: { algorithm: "concurrency", limit: 7 },
      prefix: options().prefix,
      hits: 20,
      inFlight: 4,
    };
    const reports = await fleet.run(task);
    const most = Math.max(...reports.map((report) => report.most));
    assert.ok(most <= 7 && most > 1, `${most} at the same time`);
    const held = reports.reduce((sum, report) => sum + report.held, 0);
    assert.equal(held, 200);
    const limiter = new RedisLimiter(task.policies, { ...options(), prefix: task.prefix });
    assert.equal(await limiter.get("hot"), 0);
  });

  test("use in parts what they set aside, and together no more than the limit", async () => {
    const task = {
      work: "parts",
      policies: { algorithm: "sliding_window", limit: 1_000, scale: "30d" },
      prefix: options().prefix,
      hits: 60,
      inFlight: 4,
    };
    const reports = await fleet.run(task);
    const used = reports.reduce((sum, report) => sum + report.used, 0);
    const limiter = new RedisLimiter(task.policies, { ...options(), prefix: task.prefix });
    assert.equal(await limiter.get("hot"), used);
    assert.ok(used <= 1_000 && used > 500, `${used} used`);
  });
});
