// Leases: hits that are allowed without a call, and never more of them than the policy says.

import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import fc from "fast-check";
import { Redis } from "ioredis";
import { RateLimiter } from "tollgate";
import { RedisLimiter } from "tollgate/redis";
import { startFleet } from "./lib/fleet.mjs";
import { startProxy } from "./lib/proxy.mjs";
import { allowed, times, withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const processes = 10;
let fleet;
const setting = withServer({
  start: async ({ server }) => {
    fleet = await startFleet(server.port, processes);
  },
  stop: () => fleet.stop(),
});
const { options } = setting;
const scale = "365d";

/** Policies under which nothing comes back while a test runs. */
const policies = {
  fix_window: { algorithm: "fix_window", limit: 6_000, scale },
  fix_window_per_key: { algorithm: "fix_window_per_key", limit: 6_000, scale },
  sliding_window: { algorithm: "sliding_window", limit: 1_000, scale },
  sliding_counter: { algorithm: "sliding_counter", limit: 6_000, scale },
  token_bucket: { algorithm: "token_bucket", capacity: 6_000, refillRate: 1, per: scale },
  leaky_bucket: { algorithm: "leaky_bucket", capacity: 6_000, leakRate: 1, per: scale },
  several: [
    { algorithm: "token_bucket", capacity: 2_000, refillRate: 1, per: scale },
    { algorithm: "fix_window", limit: 3_000, scale },
  ],
};

const limitOf = (given) => Math.min(...[given].flat().map(({ limit, capacity }) => limit ?? capacity));

/** Time that is moved, with the timers of the process. */
class MovedTime {
  time = new ControlledTime(setting.redis);
  #pending = 0;
  /** What happens to the next commands: "lost" before they arrive, "unheard" after, or "twice". */
  faults = [];
  commands = [];

  constructor() {
    mock.timers.enable({ apis: ["setTimeout"] });
  }

  client = {
    send: async (key, args) => {
      this.#pending++;
      this.commands.push(args);
      try {
        const fault = this.faults.shift();
        if (fault === "lost") throw new Error("lost");
        const reply = await this.time.client.send(key, args);
        if (fault === "twice") return await this.time.client.send(key, args);
        if (fault === "unheard") throw new Error("unheard");
        return reply;
      } finally {
        this.#pending--;
      }
    },
  };

  /** Waits until no command is under way, and none is about to be. */
  async rest() {
    for (let idle = 0; idle < 3; idle = this.#pending > 0 ? 0 : idle + 1)
      await new Promise((resolve) => setImmediate(resolve));
  }

  /** Lets time pass in small steps, as timers need it. */
  async pass(milliseconds) {
    await this.rest();
    for (let left = milliseconds; left > 0; left -= 40) {
      const step = Math.min(40, left);
      this.time.now += step;
      mock.timers.tick(step);
      await this.rest();
    }
  }

  [Symbol.dispose]() {
    mock.timers.reset();
    this.time[Symbol.dispose]();
  }
}

/** Hits a key until a lease is held, and returns how many hits that took. */
async function heat(limiter, key = "a") {
  let hits = 0;
  while (limiter.stats.leased === 0) {
    assert.equal((await limiter.hit(key)).allowed, true);
    hits++;
  }
  return hits;
}

describe("ten processes with leases", () => {
  async function admitted(given, { onHalf, leases = () => true, more = 0 } = {}) {
    const { prefix } = options();
    const hits = (2 * limitOf(given)) / processes + more;
    const reports = await fleet.run(
      (number) => ({ policies: given, prefix, hits, inFlight: 8, leases: leases(number) }),
      onHalf,
    );
    const heard = reports.filter((report) => report !== undefined);
    const leased = heard.reduce((sum, { stats }) => sum + stats.leased, 0);
    const observer = new RedisLimiter(given, { ...options(), prefix });
    return { count: heard.reduce((sum, { counts }) => sum + counts.length, 0), leased, heard, observer };
  }

  for (const [name, given] of Object.entries(policies)) {
    // How much is lost with leases that end while their process stands still is the machine's, and not asserted.
    test(`${name}: never more`, async () => {
      const { count, leased } = await admitted(given);
      assert.ok(count <= limitOf(given), `${count}`);
      assert.ok(leased > 0 && leased <= count, `${leased} of ${count}`);
    });
  }

  test("only some of them have leases", async () => {
    const leases = (number) => number % 2 === 0 && { ttl: "2s" };
    const { count, leased, heard } = await admitted(policies.fix_window, { leases });
    assert.ok(count <= 6_000 && count > leased && leased > 0, `${leased} of ${count}`);
    for (const [number, { stats }] of heard.entries()) if (!leases(number)) assert.equal(stats.leased, 0);
  });

  test("while scripts are forgotten all the time", async () => {
    let isOver = false;
    const flushing = (async () => {
      while (!isOver) await setting.redis.script("FLUSH");
    })();
    const { count, leased } = await admitted(policies.sliding_window);
    isOver = true;
    await flushing;
    assert.ok(count <= 1_000 && leased > 0, `${leased} of ${count}`);
  });

  test("while three of them are killed", async () => {
    const victims = fleet.members.slice(0, 3);
    const onHalf = (child) => victims.includes(child) && child.kill("SIGKILL");
    const { count, heard, observer } = await admitted(policies.token_bucket, { onHalf, more: 400 });
    assert.equal(victims.filter(({ killed }) => killed).length, 3);
    // What the victims held counts as used, and is charged by its end.
    const used = 6_000 - (await observer.get("hot"));
    assert.ok(count <= used && used <= 6_000, `${count} of ${used}`);
    assert.ok(heard.length >= processes - 3 && count > 0, `${count} by ${heard.length}`);
  });
});

describe("a lease", () => {
  const window = { algorithm: "fix_window", limit: 1_000, scale: "365d" };

  test("spares calls, and decides as a limiter in memory does while nobody else hits", async () => {
    for (const given of Object.values(policies)) {
      using moved = new MovedTime();
      const limiter = new RedisLimiter(given, options({ client: moved.client, leases: true }));
      const memory = new RateLimiter(
        [given].flat().map((policy) => ({ ...policy, denied: "free" })),
        { clock: () => moved.time.now },
      );
      await moved.pass(1);
      const limit = limitOf(given);
      for (let number = 1; number <= limit + 5; number++) {
        const { resetAfter: _, retryAfter: __, moreAfter, ...found } = await limiter.hit("a");
        const { resetAfter: ___, retryAfter: ____, moreAfter: _____, ...expected } = memory.hit("a");
        // When the rest of a lease comes back is not known, so it may be too soon, but is never 0.
        assert.equal(moreAfter > 0, found.remaining < found.limit);
        assert.deepEqual(found, expected, `${number} of ${JSON.stringify(given)}`);
      }
      assert.ok(limiter.stats.calls < limit / 5, `${limiter.stats.calls}`);
      assert.ok(limiter.stats.leased > limit / 2, `${limiter.stats.leased}`);
      limiter[Symbol.dispose]();
    }
  });

  test("is no loss for ten that hit at once: they are allowed nearly all", async () => {
    for (const given of Object.values(policies)) {
      using moved = new MovedTime();
      const shared = options({ client: moved.client, leases: true });
      const some = Array.from({ length: processes }, () => new RedisLimiter(given, shared));
      await moved.pass(1);
      const limit = limitOf(given);
      let count = 0;
      await times(processes, async (number) => {
        let left = (2 * limit) / processes;
        await times(8, async () => {
          while (left-- > 0) {
            const decision = await some[number].hit("a");
            count += allowed([decision]);
          }
        });
      });
      assert.ok(count <= limit && count >= 0.8 * limit, `${count} of ${JSON.stringify(given)}`);
      const leased = some.reduce((sum, { stats }) => sum + stats.leased, 0);
      assert.ok(leased > count / 4, `${leased} of ${count}`);
      for (const limiter of some) limiter[Symbol.dispose]();
    }
  });

  test("is returned, and then all of the limit can be used", async () => {
    for (const given of Object.values(policies)) {
      using moved = new MovedTime();
      const shared = options({ client: moved.client });
      const limit = limitOf(given);
      const some = Array.from({ length: 4 }, () => new RedisLimiter(given, { ...shared, leases: true }));
      const plain = new RedisLimiter(given, shared);
      await moved.pass(1);
      let count = 0;
      for (let number = 0; number < 400; number++) count += allowed([await some[number % 4].hit("a")]);
      assert.equal(count, 400);
      assert.ok((await plain.peek("a", 0)).remaining < limit - 400);
      await moved.pass(1_000);
      assert.equal((await plain.peek("a", 0)).remaining, limit - 400);
      while ((await plain.hit("a")).allowed) count++;
      assert.equal(count, limit);
    }
  });

  test("that nobody gives back is charged at its end", async () => {
    using moved = new MovedTime();
    const shared = options({ client: moved.client });
    const limiter = new RedisLimiter(window, { ...shared, leases: { ttl: "2s" } });
    const plain = new RedisLimiter(window, shared);
    await moved.pass(1);
    for (let number = 0; number < 30; number++) await limiter.hit("a");
    const open = await plain.get("a");
    assert.ok(open > 30);
    limiter[Symbol.dispose]();
    await moved.pass(1_900);
    assert.equal(await plain.get("a"), open);
    await moved.pass(200);
    assert.equal(await plain.get("a"), open);
    let count = 0;
    while ((await plain.hit("a")).allowed) count++;
    assert.equal(open + count, 1_000);
  });

  /** Returns whether a lease is spent after some time, in which no timer ran. */
  async function isSpentAfter(pass) {
    using time = new ControlledTime(setting.redis);
    const limiter = new RedisLimiter(window, options({ client: time.client, leases: true }));
    time.now += 1;
    await heat(limiter);
    const { leased } = limiter.stats;
    pass(time);
    assert.equal((await limiter.hit("a")).allowed, true);
    return limiter.stats.leased > leased;
  }

  test("ends with its life, also if no timer ran", async () => {
    const isSpent = (milliseconds) => isSpentAfter((time) => time.pass(milliseconds));
    assert.equal(await isSpent(874), true);
    assert.equal(await isSpent(875), false);
  });

  test("ends while its machine is suspended", async () => {
    const isSpent = (milliseconds) => isSpentAfter((time) => time.suspend(milliseconds));
    assert.equal(await isSpent(870), true);
    assert.equal(await isSpent(875), false);
  });

  test("is left to its end by a process that is disposed of, or whose wasm traps", async () => {
    using moved = new MovedTime();
    const shared = options({ client: moved.client });
    const limiter = new RedisLimiter(window, { ...shared, leases: true });
    const other = new RedisLimiter(window, { ...shared, leases: true });
    await moved.pass(1);
    for (let number = 0; number < 40; number++) await limiter.hit("a");
    const { leased } = limiter.stats;
    const { charCodeAt } = String.prototype;
    String.prototype.charCodeAt = () => {
      String.prototype.charCodeAt = charCodeAt;
      throw new RangeError("Maximum call stack size exceeded");
    };
    // What it held is gone, and it asks again.
    assert.equal((await limiter.hit("a")).allowed, true);
    assert.equal(String.prototype.charCodeAt, charCodeAt, "there was no trap");
    assert.equal((await limiter.hit("a")).allowed, true);
    assert.equal(limiter.stats.leased, leased);
    for (let number = 0; number < 40; number++) await limiter.hit("a");
    assert.ok(limiter.stats.leased > leased);
    // A renewal that is under way comes to nothing.
    const hits = times(20, () => limiter.hit("a").catch(({ code }) => code));
    limiter[Symbol.dispose]();
    await hits;
    await assert.rejects(limiter.hit("a"), { code: "disposed" });
    await moved.pass(2_000);
    let count = 82;
    while ((await other.hit("a")).allowed) count++;
    assert.ok(count < 1_000);
  });

  test("is not renewed twice by a command that arrives twice", async () => {
    using moved = new MovedTime();
    const limiter = new RedisLimiter(window, options({ client: moved.client, leases: true }));
    await moved.pass(1);
    for (let number = 1; number <= 300; number++) {
      moved.faults = ["twice", "twice"];
      assert.equal((await limiter.hit("a")).count, number);
    }
    assert.ok(limiter.stats.leased > 200);
    moved.faults = [];
    await moved.pass(1_000);
    assert.equal(await limiter.get("a"), 300);
  });

  test("is lost with the reply to its renewal, and so is what it covered; nothing more", async () => {
    using moved = new MovedTime();
    const shared = options({ client: moved.client });
    const limiter = new RedisLimiter(window, { ...shared, leases: true });
    const plain = new RedisLimiter(window, shared);
    await moved.pass(1);
    let count = 0;
    for (let number = 0; number < 1_500; number++) {
      // What is proposed while a reply is missing shows by the next.
      if (number % 7 === 0) moved.faults = [number % 2 === 0 ? "unheard" : "lost"];
      const decision = await limiter.hit("a").catch(() => ({ allowed: false }));
      count += allowed([decision]);
      if (number % 50 === 0) await moved.rest();
    }
    assert.ok(limiter.stats.unanswered > 10);
    moved.faults = [];
    await moved.rest();
    assert.ok(count <= (await plain.get("a")), `${count}`);
    await moved.pass(3_000);
    while ((await plain.hit("a")).allowed) count++;
    assert.ok(count <= 1_000 && count > 500, `${count}`);
  });

  test("whose reply comes after its life is not spent", async () => {
    using moved = new MovedTime();
    const held = [];
    let isHeld = false;
    const client = {
      async send(key, args) {
        const reply = await moved.client.send(key, args);
        if (isHeld) await new Promise((resolve) => held.push(resolve));
        return reply;
      },
    };
    const shared = options({ timeout: "30s" });
    const limiter = new RedisLimiter(window, { ...shared, client, leases: true });
    const plain = new RedisLimiter(window, { ...shared, client: moved.client });
    await moved.pass(1);
    for (let number = 0; number < 40; number++) await limiter.hit("a");
    await moved.rest();
    isHeld = true;
    const before = limiter.stats.leased;
    const late = [];
    while (held.length === 0) {
      late.push(limiter.hit("a"));
      await moved.rest();
    }
    const leased = limiter.stats.leased - before;
    await moved.pass(1_500);
    isHeld = false;
    for (const release of held) release();
    assert.equal(allowed(await Promise.all(late)), late.length);
    await limiter.hit("a");
    assert.equal(limiter.stats.leased - before, leased);
    assert.ok((await plain.get("a")) > 40 + late.length);
  });

  test("of a Redis that is away is spent, and then onError decides", async () => {
    using moved = new MovedTime();
    const shared = options({ client: moved.client, leases: true });
    const limiter = new RedisLimiter(window, { ...shared, onError: "deny" });
    const falling = new RedisLimiter(window, { ...shared, fallback: { share: 0.1 } });
    await moved.pass(1);
    for (const each of [limiter, falling]) for (let number = 0; number < 60; number++) await each.hit("a");
    const left = limiter.stats.leased;
    moved.faults = Array(10_000).fill("lost");
    let decision = await limiter.hit("a");
    while (decision.reason !== "error") {
      assert.equal(decision.allowed, true);
      decision = await limiter.hit("a");
    }
    assert.equal(decision.allowed, false);
    assert.ok(limiter.stats.leased >= left);
    // Also those that waited for a renewal, and in no time.
    assert.equal(allowed(await times(100, () => limiter.hit("a"))), 0);
    assert.equal(allowed(await times(400, () => falling.hit("b"))), 100);
    moved.faults = [];
    await until(async () => (await limiter.hit("a")).reason === undefined);
  });

  test("is restored to a Redis that has lost everything", async () => {
    using moved = new MovedTime();
    const shared = options({ client: moved.client });
    const limiter = new RedisLimiter(window, { ...shared, leases: true });
    await moved.pass(1);
    let count = 0;
    for (let number = 0; number < 1_200; number++) {
      if (number % 100 === 50) await setting.lose();
      count += allowed([await limiter.hit("a")]);
    }
    assert.equal(count, 1_000);
    assert.ok(limiter.stats.restored > 3 && limiter.stats.leased > 800);
  });

  test("survives a client that sends again what it has lost", async () => {
    const proxy = await startProxy(setting.server.port);
    const client = new Redis({ port: proxy.port, retryStrategy: () => 1 });
    client.on("error", () => {});
    try {
      const given = options({ client });
      // So much that leases which are lost while this process stands still do not use it up.
      const roomy = { ...window, limit: 100_000 };
      const limiter = new RedisLimiter(roomy, { ...given, leases: true });
      const other = new RedisLimiter(roomy, { ...given, client: setting.redis });
      let count = 0;
      for (let round = 0; round < 40; round++) {
        proxy.cutNext();
        count += allowed(await times(20, () => limiter.hit("a")));
        assert.ok(count <= (await other.get("a")), `after ${round}`);
      }
      assert.ok(count === 800 && proxy.cuts >= 10, `${count}, ${proxy.cuts} cuts`);
    } finally {
      client.disconnect();
      await proxy.stop();
    }
  });
});

async function until(work) {
  while (!(await work())) await new Promise((resolve) => setImmediate(resolve));
}

describe("operations that are sent as if there were no leases", () => {
  const window = { algorithm: "fix_window", limit: 1_000, scale: "1d", name: "w" };

  /** The commands of a limiter without what is random in them. */
  const plainly = (commands) =>
    commands.map((args) =>
      args.slice(2).map((arg) => arg.replace(/([!~][\w-]{5}|^test:\d+:|^[\w-]{5}(?=[0-9a-z]{4}$))/g, "")),
    );

  async function commandsOf(given, leases, work) {
    using moved = new MovedTime();
    const limiter = new RedisLimiter(given, options({ client: moved.client, leases }));
    await moved.pass(1);
    await work(limiter, moved);
    assert.equal(limiter.stats.leased, 0);
    limiter[Symbol.dispose]();
    return plainly(moved.commands);
  }

  const cases = {
    "a key that is hit now and then": async (limiter, moved) => {
      for (let number = 0; number < 20; number++) {
        await limiter.hit("a");
        await moved.pass(1_200);
      }
    },
    "many keys that are hit once": (limiter) => times(100, (number) => limiter.hit(`${number}`)),
    "costs by policy": async (limiter) => {
      for (let number = 0; number < 20; number++) await limiter.hit("a", { w: 1 });
    },
    "numbers of the call": async (limiter) => {
      for (let number = 0; number < 20; number++) await limiter.hit("a", 1, { ...window, limit: 500 });
    },
    "a cost of 0, and peeks": async (limiter) => {
      for (let number = 0; number < 20; number++) await limiter.hit("a", 0);
      for (let number = 0; number < 20; number++) await limiter.peek("a");
    },
    "other operations": async (limiter) => {
      for (let number = 0; number < 20; number++) await limiter.inc("a");
      await limiter.set("a", 3);
      await limiter.reset("a");
    },
  };
  for (const [name, work] of Object.entries(cases)) {
    test(name, async () => {
      const [without, withLeases] = [
        await commandsOf(window, undefined, work),
        await commandsOf(window, true, work),
      ];
      assert.deepEqual(withLeases, without);
    });
  }

  test("denied hits that count, small limits, and concurrency", async () => {
    const burst = async (limiter) => {
      for (let number = 0; number < 40; number++) await limiter.hit("a");
    };
    const counting = { ...window, denied: "count" };
    assert.deepEqual(await commandsOf(counting, true, burst), await commandsOf(counting, false, burst));
    // A small limit is not worth a lease, and asks for every hit.
    using moved = new MovedTime();
    const small = new RedisLimiter({ ...window, limit: 16 }, options({ client: moved.client, leases: true }));
    await burst(small);
    assert.deepEqual([small.stats.operations, small.stats.leased], [16, 0]);
    const slots = new RedisLimiter({ algorithm: "concurrency", limit: 5 }, options({ leases: true }));
    await assert.rejects(slots.hit("a"), { code: "reserve_only" });
    assert.equal((await slots.reserve("a")).allowed, true);
  });

  test("bad input is an error as ever", async () => {
    const limiter = new RedisLimiter(window, options({ leases: true }));
    for (const cost of [-1, 1.5, Number.NaN, 2 ** 53])
      await assert.rejects(limiter.hit("a", cost), { code: "invalid_cost" });
    for (const key of ["", "\ud800", 7, undefined, "x".repeat(3_000)])
      await assert.rejects(limiter.hit(key), { code: "invalid_key" });
    assert.equal(limiter.stats.keys, 0);
  });
});

describe("denials beside leases", () => {
  const window = { algorithm: "fix_window", limit: 200, scale: "1d" };

  test("hold for half a lease, and not beside reservations", async () => {
    using moved = new MovedTime();
    const shared = options({ client: moved.client });
    const [holder, plain] = [
      new RedisLimiter(window, { ...shared, leases: true }),
      new RedisLimiter(window, shared),
    ];
    await moved.pass(1);
    for (let number = 0; number < 20; number++) await holder.hit("a");
    const left = (await plain.peek("a", 0)).remaining;
    assert.ok(left < 180);
    assert.equal((await plain.hit("a", left)).allowed, true);
    assert.equal((await plain.hit("a")).allowed, false);
    const { calls } = plain.stats;
    assert.equal(allowed(await times(100, () => plain.hit("a"))), 0);
    assert.equal(plain.stats.calls, calls);
    // What the holder has left it may still spend.
    assert.equal((await holder.hit("a")).allowed, true);
    await moved.pass(501);
    await plain.hit("a");
    assert.equal(plain.stats.calls, calls + 1);
    // After the lease was given back there is room again.
    await moved.pass(1_000);
    assert.equal((await plain.hit("a")).allowed, true);
    await plain.reset("a");
    await plain.reserve("a", 200);
    assert.equal((await plain.hit("a")).allowed, false);
    const asked = plain.stats.calls;
    await times(3, () => plain.hit("a"));
    assert.ok(plain.stats.calls > asked);
  });

  test("end at once by what the process itself does", async () => {
    using moved = new MovedTime();
    const shared = options({ client: moved.client, leases: true });
    const [one, other] = [new RedisLimiter(window, shared), new RedisLimiter(window, shared)];
    await moved.pass(1);
    for (let number = 0; number < 20; number++) await one.hit("a");
    while ((await other.hit("a")).allowed);
    assert.equal((await other.hit("a")).allowed, false);
    await other.reset("a");
    assert.equal((await other.hit("a")).allowed, true);
  });
});

test("options are checked", () => {
  const made = (leases) => () => new RedisLimiter(policies.fix_window, options({ leases }));
  for (const leases of [undefined, true, false, {}, { ttl: 1 }, { ttl: "10s" }, { ttl: undefined }])
    assert.doesNotThrow(made(leases));
  for (const leases of [null, 0, 1, "true", [], () => true])
    assert.throws(made(leases), { code: "invalid_option", message: /leases: .* an object with ttl/ });
  for (const ttl of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "11s", 10_001, "1 s", null, {}, true])
    assert.throws(made({ ttl }), {
      code: "invalid_option",
      message: /ttl: .* at most ten seconds; use 1 to 10000 .* "2s" or "10s"$/,
    });
  assert.throws(made({ tll: "1s" }), { code: "invalid_option", message: /tll/ });
  let reads = 0;
  const once = {
    get ttl() {
      return ++reads === 1 ? "1s" : "1h";
    },
  };
  assert.doesNotThrow(made(once));
  assert.equal(reads, 1);
});

describe("at any time, whatever fails", () => {
  const limits = fc.integer({ min: 15, max: 300 });
  // Not much longer than leases: those that are spent too late show at the ends of windows.
  const scales = fc.integer({ min: 400, max: 4_000 });
  const windowed = fc.record({
    algorithm: fc.constantFrom("fix_window", "fix_window", "sliding_window", "sliding_counter"),
    limit: limits,
    scale: scales,
  });
  const rates = fc.integer({ min: 1, max: 60 });
  const tokens = fc.record({
    algorithm: fc.constant("token_bucket"),
    capacity: limits,
    refillRate: rates,
    per: scales,
  });
  const leaky = fc.record({
    algorithm: fc.constant("leaky_bucket"),
    capacity: limits,
    leakRate: rates,
    per: scales,
  });
  const fault = fc.constantFrom("lost", "unheard", "twice", undefined, undefined);
  const steps = fc.record({
    after: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 1, max: 90 }),
      fc.integer({ min: 1, max: 900 }),
      fc.integer({ min: 1, max: 3_000 }),
    ),
    who: fc.nat(3),
    // Few, or more than the limit: only then a hit too many shows.
    hits: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 60, max: 320 })),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 4 })),
    together: fc.boolean(),
    // A process that is busy gives nothing back in time.
    isBusy: fc.boolean(),
    // What is lost uses up the limit, and so hides a hit too many: mostly nothing is.
    faults: fc.oneof({ arbitrary: fc.constant([]), weight: 4 }, fc.array(fault, { maxLength: 4 })),
    deed: fc.oneof(
      { arbitrary: fc.constant("hit"), weight: 12 },
      { arbitrary: fc.constantFrom("kill", "dispose", "reserve", "peek"), weight: 3 },
    ),
  });

  test("no more is admitted than the policy's definition says", async () => {
    let [round, leased] = [0, 0];
    const property = fc.asyncProperty(
      fc.oneof({ arbitrary: windowed, weight: 3 }, tokens, leaky),
      fc.array(fc.constantFrom(undefined, true, { ttl: 60 }, { ttl: "3s" }), { minLength: 1, maxLength: 4 }),
      fc.array(steps, { minLength: 1, maxLength: 25, size: "max" }),
      async (policy, leases, steps) => {
        using moved = new MovedTime();
        const shared = { client: moved.client, prefix: `random:${++round}:`, timeout: "20s" };
        const all = [];
        const start = (number) => {
          const limiter = new RedisLimiter(policy, { ...shared, leases: leases[number] });
          all.push(limiter);
          return limiter;
        };
        const members = leases.map((_, number) => start(number));
        const uses = [];
        for (const { after, who, hits, cost, together, isBusy, faults, deed } of steps) {
          if (isBusy) moved.time.now += after;
          else await moved.pass(after);
          moved.faults = [...faults];
          const number = who % members.length;
          const member = members[number];
          const use = async () => {
            const decision = await member.hit("a", cost).catch(() => ({ allowed: false }));
            if (decision.allowed) uses.push([moved.time.now, cost]);
          };
          if (deed === "reserve") {
            const reservation = await member.reserve("a", cost, { ttl: 500 }).catch(() => undefined);
            const settled = await reservation?.settle(cost).catch(() => undefined);
            if (settled === "settled") uses.push([moved.time.now, cost]);
          } else if (deed === "peek") await member.peek("a").catch(() => {});
          else if (deed === "hit" && together) await times(hits, use);
          else if (deed === "hit") for (let count = 0; count < hits; count++) await use();
          if (deed === "dispose") member[Symbol.dispose]();
          if (deed === "kill" || deed === "dispose") members[number] = start(number);
          await moved.rest();
        }
        moved.faults = [];
        for (const limiter of all) {
          leased += limiter.stats.leased;
          limiter[Symbol.dispose]();
        }
        checkUses(policy, uses);
      },
    );
    await fc.assert(property, { numRuns: 300 });
    assert.ok(leased > 2_000, `${leased}`);
  });
});

/** Fails if uses are more than a policy's definition allows. */
function checkUses({ algorithm, limit, capacity, scale, per, refillRate, leakRate }, uses) {
  let [start, previous, current, level, last] = [0, 0, 0, 0, 0];
  const log = [];
  for (const [at, cost] of uses) {
    const said = `${algorithm} at ${at}`;
    if (algorithm === "sliding_window") {
      log.push([at, cost]);
      while (log[0][0] + scale <= at) log.shift();
      assert.ok(log.reduce((sum, [, cost]) => sum + cost, 0) <= limit, said);
    } else if (capacity !== undefined) {
      const rate = refillRate ?? leakRate;
      level = Math.max(0, level - rate * (at - last)) + cost * per;
      last = at;
      assert.ok(level <= capacity * per, said);
    } else {
      const window = at - (at % scale);
      if (window !== start) {
        previous = window === start + scale ? current : 0;
        [start, current] = [window, 0];
      }
      current += cost;
      const before = algorithm === "sliding_counter" ? previous * (scale - (at - window)) : 0;
      assert.ok(before + current * scale <= limit * scale, said);
    }
  }
}
