// Limiters with other policies on one key: each operation is decided under the policies of the process that sent it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RedisLimiter } from "tollgate/redis";
import {
  counts,
  eachAlone,
  eachInLists,
  limitersUnder,
  oneTooMany,
  policiesOf,
} from "../lib/many-policies.mjs";
import fc from "../lib/properties.mjs";
import { withServer } from "./lib/setting.mjs";
import { ControlledTime } from "./lib/time.mjs";

const setting = withServer();
const { options } = setting;

const hour = 3_600_000;

/** Ten policies of five shapes: of each shape two versions. */
const policies = ["1h", "3h"].flatMap((scale) =>
  ["api", "login", ...(scale === "1h" ? ["search"] : [])].flatMap((name) =>
    [5, 8].map((limit) => ({ algorithm: "fix_window_per_key", limit, scale, name })),
  ),
);

/** What rows of fixed windows say, each under the policy of its call. */
class Oracle {
  #rows = new Map();

  #row({ name, scale }, now) {
    const shape = `${name} ${scale}`;
    const row = this.#rows.get(shape);
    return row !== undefined && now < row.start + Number.parseInt(scale, 10) * hour
      ? row
      : { shape, start: now, count: 0 };
  }

  /** Adds to the count of a row that a decision, or an operation, changes. */
  #put(row, count) {
    this.#rows.set(row.shape, { ...row, count });
    return count;
  }

  hit({ limit, ...policy }, now, cost) {
    const row = this.#row(policy, now);
    const isAllowed = row.count + cost <= limit;
    return [isAllowed, isAllowed ? this.#put(row, row.count + cost) : row.count, limit];
  }

  /** A hit under a limit of the call. */
  hitBy(policy, now, cost) {
    return this.hit({ ...policy, limit: policy.limit + cost }, now, cost);
  }

  peek(policy, now) {
    const { count } = this.#row(policy, now);
    const isAllowed = count + 1 <= policy.limit;
    return [isAllowed, count + Number(isAllowed), policy.limit];
  }

  inc(policy, now, cost) {
    const row = this.#row(policy, now);
    return this.#put(row, row.count + cost);
  }

  set(policy, now, count) {
    // It begins a window.
    return this.#put({ ...this.#row(policy, now), start: now }, count);
  }

  get(policy, now) {
    return this.#row(policy, now).count;
  }
}

const shown = (result) =>
  typeof result === "number" ? result : [result.allowed, result.count, result.limit];

const operations = {
  hit: (limiter, cost) => limiter.hit("a", cost),
  hitBy: (limiter, cost, policy) => limiter.hit("a", cost, { ...policy, limit: policy.limit + cost }),
  peek: (limiter) => limiter.peek("a"),
  inc: (limiter, cost) => limiter.inc("a", cost),
  set: (limiter, count) => limiter.set("a", count),
  get: (limiter) => limiter.get("a"),
};

const steps = fc.record({
  who: fc.nat(5),
  name: fc.oneof(
    { weight: 8, arbitrary: fc.constant("hit") },
    { weight: 3, arbitrary: fc.constant("hitBy") },
    ...["peek", "inc", "set", "get"].map((name) => ({ weight: 1, arbitrary: fc.constant(name) })),
  ),
  amount: fc.integer({ min: 1, max: 3 }),
  /** How many of them are sent in one entry. */
  times: fc.integer({ min: 1, max: 2 }),
  after: fc.oneof(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 100_000 }), fc.constant(hour)),
  /** Whether the script asks for a base with the next call. */
  wishes: fc.boolean(),
  /** What goes wrong: Redis does the command, or does not, and the reply is lost; the process or Redis loses the key. */
  fault: fc.option(fc.constantFrom("reply", "command", "memory", "key"), { freq: 4 }),
});

/** The client of one process, which can lose a command or its reply, and wishes for bases. */
class FaultyClient {
  wishes = false;
  fault;
  /** How many values began anew, and how many replies have a number of policies. */
  renewed = 0;
  numbers = 0;
  #client;
  #isNew = true;

  constructor(client) {
    this.#client = client;
  }

  async send(key, [command, script, ...args]) {
    // A base is taken whatever it saves.
    const given = command === "EVAL" ? script.replace("2 * (8 + #text) < from + 40", "true") : script;
    if (command === "EVAL") assert.notEqual(given, script);
    // Each process sends the script once, since another process may have the other text.
    if (command === "EVALSHA" && this.#isNew) throw new Error("NOSCRIPT");
    this.#isNew = false;
    if (this.fault === "command") throw new Error("not sent");
    const [time, ...texts] = await this.#client.send(key, [command, given, ...args]);
    if (args.at(-2) === "n" && texts[0]?.includes(args.at(-1).slice(-10))) this.renewed++;
    if (texts.some((text) => /\$\d/.test(text))) this.numbers++;
    // Another reply says that nothing was done.
    if (this.fault === "reply" && texts.some((text) => /^[*!]?[+#=^]/.test(text))) throw new Error("lost");
    return [time, ...texts.map((text) => (this.wishes && /^[+#=]/.test(text) ? `*${text}` : text))];
  }
}

/** A fleet of six processes on one key, and what each step does to it. */
class Fleet {
  time = new ControlledTime(setting.redis);
  #given = options({ maxKeys: 1 });
  #losses = 0;
  members;

  constructor(chosen) {
    this.members = chosen.map((index) => {
      const client = new FaultyClient(this.time.client);
      const policy = policies[index];
      return { client, policy, limiter: new RedisLimiter(policy, { ...this.#given, client }) };
    });
  }

  /** Returns what the operations of a step came to; `undefined` for those without a reply. */
  async perform({ who, name, amount, times, after, wishes, fault }, { areAllKnowing }) {
    const { time, members } = this;
    time.now += after;
    time.forgetDenials();
    const { client, policy, limiter } = members[who];
    if (fault === "memory") await limiter.get("another key");
    // A process that restores a key tells others of eight losses.
    if (fault === "key" && ++this.#losses <= 7) {
      // Where all know as much, the first one restores all of it.
      if (areAllKnowing) for (const { limiter } of members) await limiter.peek("a");
      await setting.redis.del(`${this.#given.prefix}4:default:a`);
      time.now++;
      time.forgetDenials();
    }
    client.wishes = wishes;
    client.fault = fault;
    const results = await Promise.all(
      Array.from({ length: times }, () =>
        operations[name](limiter, amount, policy).catch((error) => {
          assert.equal(error.code, "unanswered", error.stack);
        }),
      ),
    );
    client.fault = undefined;
    return results;
  }

  /** Adds to the counters what happened. */
  count(counted) {
    for (const { limiter, client } of this.members) {
      counted.bases += limiter.stats.bases;
      counted.restored += limiter.stats.restored;
      counted.renewed += client.renewed;
      counted.numbers += client.numbers;
    }
  }

  [Symbol.dispose]() {
    this.time[Symbol.dispose]();
  }
}

/** Checks what a fleet does in many sequences of steps, and that all that can happen did, at least so often. */
async function checked(least, check) {
  const counted = { bases: 0, restored: 0, renewed: 0, numbers: 0 };
  const property = fc.asyncProperty(
    fc.array(fc.nat(policies.length - 1), { minLength: 6, maxLength: 6 }),
    fc.array(steps, { minLength: 1, maxLength: 80, size: "max" }),
    async (chosen, all) => {
      using fleet = new Fleet(chosen);
      await check(fleet, all);
      fleet.count(counted);
    },
  );
  await fc.assert(property, { numRuns: 200 });
  for (const [name, number] of Object.entries(least))
    assert.ok(counted[name] >= number, JSON.stringify(counted));
}

test("each operation is decided under its sender's policies, whatever is read, lost or rebased", () =>
  checked({ bases: 500, restored: 100, renewed: 100, numbers: 500 }, async (fleet, all) => {
    const oracle = new Oracle();
    const { time, members } = fleet;
    for (const step of all) {
      const results = await fleet.perform(step, { areAllKnowing: true });
      if (step.fault === "command") continue;
      for (const result of results) {
        const expected = oracle[step.name](members[step.who].policy, time.now, step.amount);
        if (step.fault !== "reply") assert.deepEqual(shown(result), expected);
      }
    }
    for (const { policy, limiter } of members)
      assert.equal(await limiter.get("a"), oracle.get(policy, time.now));
  }));

test("processes that know more or less of a lost key read each other under the right policies", () =>
  checked({ bases: 500, restored: 100 }, async (fleet, all) => {
    for (const step of all) {
      const { limit } = fleet.members[step.who].policy;
      const expected = step.name === "hitBy" ? limit + step.amount : limit;
      for (const result of await fleet.perform(step, { areAllKnowing: false }))
        if (typeof result === "object") assert.equal(result.limit, expected);
    }
    // The last to come may know more than those before.
    const counts = async () => {
      const found = {};
      for (const { policy, limiter } of fleet.members) {
        const shape = `${policy.name} ${policy.scale}`;
        found[shape] ??= new Set();
        found[shape].add(await limiter.get("a"));
      }
      return found;
    };
    await counts();
    for (const [shape, found] of Object.entries(await counts())) assert.equal(found.size, 1, shape);
  }));

/** Limiters of so many shapes on one key. */
const rules = (count, given) =>
  Array.from({ length: count }, (_, number) => {
    const policy = { algorithm: "fix_window", limit: 3 + (number % 5), scale: "365d", name: `rule${number}` };
    return new RedisLimiter(policy, given);
  });

/** A key in Redis, hit by a limiter for each list of policies. */
function keyUnder(policies) {
  const given = options();
  return limitersUnder(policies, (own) => new RedisLimiter(own, given));
}

for (const count of counts) {
  test(`${count} limiters with other policies on one key each admit their own limit`, () =>
    eachAlone(count, keyUnder(policiesOf(count)).hit));

  test(`limiters whose lists share ${count} policies on one key each admit each limit`, () =>
    eachInLists(count, keyUnder(policiesOf(count)).hit));
}

test("one row too many is an error that changes nothing", () =>
  oneTooMany(keyUnder(policiesOf(counts.at(-1)))));

test("the text of policies is in a value once, also that of a call's own", async () => {
  const given = options();
  const fleet = rules(4, given);
  const call = [{ ...fleet[0].policies[0], limit: 1_000 }];
  for (let round = 0; round < 100; round++) {
    for (const limiter of fleet) await limiter.inc("a");
    await fleet[0].hit("a", 1, call);
    const { text } = await setting.value(given);
    for (const name of ["3.1.31536000000'rule0", "1000.1.31536000000'rule0", "'rule1", "'rule3"])
      assert.ok(text.split(name).length <= 2, `${name} in ${text}`);
  }
  assert.equal(await new RedisLimiter(fleet[0].policies, given).get("a"), 200);
  assert.ok(fleet[0].stats.bases > 0);
});

test("policies beyond 64 on a key are named by their text", async () => {
  const given = options();
  const limiter = new RedisLimiter({ algorithm: "fix_window", limit: 1, scale: "365d" }, given);
  const [own] = limiter.policies;
  for (let limit = 100; limit < 200; limit++)
    assert.equal((await limiter.hit("a", 1, { ...own, limit })).limit, limit);
  assert.equal(await new RedisLimiter(own, given).get("a"), 100);
  const { text } = await setting.value(given);
  assert.match(text, /\{0\.163\.1\.31536000000\}64/);
  assert.match(text, /h1?@0\.199\.1\.31536000000!/);
});

test("once a deploy is over, a value names the new policies only", async () => {
  using time = new ControlledTime(setting.redis);
  const given = options({ client: time.client });
  const window = { algorithm: "fix_window", limit: 5_000, scale: "365d" };
  const [before, after] = [5_000, 6_000].map((limit) => new RedisLimiter({ ...window, limit }, given));
  for (let hit = 0; hit < 10; hit++) for (const limiter of [before, after]) await limiter.hit("a");
  time.now += 60_000;
  for (let hit = 0; hit < 60; hit++) await after.hit("a");
  const { text } = await setting.value(given);
  assert.ok(/^0\.6000\.1\.31536000000\|#[^{$]+$/.test(text.slice(8)), text);
  // One that knows what came before reads all of it.
  assert.equal((await before.hit("a")).count, 81);
  assert.equal((await after.hit("a")).count, 82);
});
