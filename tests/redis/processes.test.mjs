// Ten processes and one key: exactly what the policy allows, whatever else happens.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { startFleet } from "./lib/fleet.mjs";
import { withServer } from "./lib/setting.mjs";

let fleet;
const setting = withServer({
  start: async ({ server }) => {
    fleet = await startFleet(server.port, processes);
  },
  stop: () => fleet.stop(),
});
const limit = 800;
const processes = 10;
const scale = "365d";

/** Policies under which nothing comes back while a test runs. */
const policies = {
  fix_window: { algorithm: "fix_window", limit, scale },
  fix_window_per_key: { algorithm: "fix_window_per_key", limit, scale },
  sliding_window: { algorithm: "sliding_window", limit, scale },
  sliding_counter: { algorithm: "sliding_counter", limit, scale },
  token_bucket: { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: scale },
  leaky_bucket: { algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: scale },
  several: [
    { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: scale },
    { algorithm: "sliding_window", limit: 1_000, scale },
  ],
};

/** Has all processes hit a key until the budget is used twice over, and returns the counts of what was allowed. */
async function admitted(given, each, onHalf) {
  const task = { policies: given, prefix: setting.options().prefix, hits: each, inFlight: 8 };
  const reports = await fleet.run(task, onHalf);
  return { counts: reports.flatMap((report) => report?.counts ?? []), prefix: task.prefix, reports };
}

/** Each hit that was allowed left another count behind: nobody was told the same, and nobody was left out. */
function checkCounts(counts, first, last) {
  const expected = Array.from({ length: last - first + 1 }, (_, number) => first + number);
  assert.deepEqual(
    counts.toSorted((a, b) => a - b),
    expected,
  );
}

describe("ten processes, clocks up to five minutes off", () => {
  for (const [name, given] of Object.entries(policies)) {
    test(name, async () => {
      const { counts } = await admitted(given, (2 * limit) / processes);
      const [first] = [given].flat();
      if (first.algorithm === "token_bucket") checkCounts(counts, 0, limit - 1);
      else checkCounts(counts, 1, limit);
    });
  }

  test("a ban begins with exactly the denial that is one too many", async () => {
    const given = [
      { algorithm: "fix_window", limit: 100, scale },
      { algorithm: "ban", after: 400, scale, for: "365d" },
    ];
    for (const leases of [false, { ttl: "1s" }]) {
      const task = { policies: given, prefix: setting.options().prefix, hits: 80, inFlight: 8, leases };
      const reports = await fleet.run(task);
      const sum = (name) => reports.reduce((sum, report) => sum + report[name], 0);
      const allowed = reports.flatMap(({ counts }) => counts).length;
      assert.equal(allowed + sum("denied"), 800);
      if (leases === false) {
        assert.equal(allowed, 100);
        assert.equal(sum("banned"), 800 - 100 - 399);
      } else {
        // What a lease has left is lost when its holder learns of the ban.
        assert.ok(allowed <= 100 && allowed > 0, `${allowed} allowed`);
        assert.ok(sum("banned") > 0 && sum("denied") - sum("banned") <= 800 - allowed);
      }
      const limiter = new RedisLimiter(given, { ...setting.options(), prefix: task.prefix });
      assert.equal((await limiter.hit("hot")).reason, "banned");
      assert.equal(await limiter.unban("hot"), true);
      assert.equal((await limiter.peek("hot", 100)).reason, undefined);
      assert.equal(await limiter.get("hot", "ban"), 0);
    }
  });

  test("while scripts are forgotten all the time", async () => {
    let isOver = false;
    const flushing = (async () => {
      while (!isOver) await setting.redis.script("FLUSH");
    })();
    // Repeats until the processes have loaded enough scripts, however rarely this process flushes them.
    for (let loads = 0; loads <= processes; ) {
      const { counts, reports } = await admitted(policies.sliding_window, (2 * limit) / processes);
      checkCounts(counts, 1, limit);
      for (const { stats } of reports) loads += stats.scriptLoads;
    }
    isOver = true;
    await flushing;
  });

  test("while Redis loses everything, and is restored", async () => {
    // The first who knows restores the key; what others had not yet read of it is lost, and only that.
    const task = { policies: policies.fix_window, prefix: setting.options().prefix, hits: 40, inFlight: 1 };
    await fleet.run(task);
    const limiter = new RedisLimiter(policies.fix_window, { ...setting.options(), prefix: task.prefix });
    assert.equal(await limiter.get("hot"), 400);
    await setting.lose();
    const { counts } = await fleetFrom(task.prefix, limiter);
    checkCounts(counts, 401, limit);
  });

  test("while three of them are killed", async () => {
    const victims = fleet.members.slice(0, 3);
    const kill = (child) => victims.includes(child) && child.kill("SIGKILL");
    const { counts, prefix, reports } = await admitted(
      policies.fix_window,
      (2 * limit) / processes + 40,
      kill,
    );
    assert.equal(victims.filter(({ killed }) => killed).length, 3);
    assert.ok(reports.slice(3).every((report) => report !== undefined));
    // Those that were killed cannot say what they were told; nobody else was told the same.
    assert.ok(counts.length <= limit && counts.length > 0);
    assert.equal(new Set(counts).size, counts.length);
    const limiter = new RedisLimiter(policies.fix_window, { ...setting.options(), prefix });
    assert.equal(await limiter.get("hot"), limit);
    assert.equal((await limiter.hit("hot")).allowed, false);
  });
});

/** Goes on with a key of which one limiter knows the states. */
async function fleetFrom(prefix, limiter) {
  await limiter.hit("hot", 0);
  const reports = await fleet.run({ policies: policies.fix_window, prefix, hits: 60, inFlight: 4 });
  return { counts: reports.flatMap((report) => report?.counts ?? []) };
}
