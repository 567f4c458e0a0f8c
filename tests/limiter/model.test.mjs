// Random operations on a limiter, on stored states, and on a naive model: all return the same.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter, step } from "tollgate";
import fc from "../lib/properties.mjs";
import { Model, periodOf } from "./model.mjs";

const most = Number.MAX_SAFE_INTEGER;

const limits = fc.oneof(
  { arbitrary: fc.integer({ min: 1, max: 12 }), weight: 8 },
  { arbitrary: fc.constantFrom(1_000, 2 ** 31 - 1, 2 ** 31, most), weight: 1 },
);
const durations = fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.constantFrom("1ms", "250ms", "1s", "1m"));
const rates = fc.integer({ min: 1, max: 40 });

const windowPolicies = (...names) =>
  fc.record({ algorithm: fc.constantFrom(...names), limit: limits, scale: durations });
const capacities = fc.integer({ min: 1, max: 1_000 });
const tokenBuckets = fc.record(
  { algorithm: fc.constant("token_bucket"), capacity: capacities, refillRate: rates, per: durations },
  { requiredKeys: ["algorithm", "capacity", "refillRate"] },
);
const leakyBuckets = fc.record(
  { algorithm: fc.constant("leaky_bucket"), capacity: capacities, leakRate: rates, per: durations },
  { requiredKeys: ["algorithm", "capacity", "leakRate"] },
);

/** The numbers of a call: higher or lower than the limiter's own. */
function forOneCall(policy, { limit, rate }) {
  const by = (factor) => (number) => Math.min(most, Math.ceil(number * factor));
  const change = { limit: by(limit), capacity: by(limit), refillRate: by(rate), leakRate: by(rate) };
  return Object.fromEntries(
    Object.entries(policy).map(([name, value]) => [name, change[name]?.(value) ?? value]),
  );
}

const named = (list) => list.map((policy, position) => ({ name: `policy ${position}`, ...policy }));
const alone = (policies, ...denied) =>
  fc
    .tuple(policies, fc.constantFrom({}, { denied: "free" }, ...denied))
    .map(([policy, denied]) => named([{ ...policy, ...denied }]));
const counted = { denied: "count" };

const policyLists = {
  fix_window: alone(windowPolicies("fix_window"), counted),
  fix_window_per_key: alone(windowPolicies("fix_window_per_key"), counted),
  sliding_window: alone(windowPolicies("sliding_window"), counted),
  sliding_counter: alone(windowPolicies("sliding_counter"), counted),
  token_bucket: alone(tokenBuckets),
  leaky_bucket: alone(leakyBuckets),
  several: fc
    .array(
      fc.oneof(
        windowPolicies("fix_window", "fix_window_per_key", "sliding_window", "sliding_counter"),
        tokenBuckets,
        leakyBuckets,
      ),
      { minLength: 2, maxLength: 4 },
    )
    .map(named),
};

/** Some that a careless table would take for one another. */
const keys = fc.constantFrom(1, "1", 1n, 0, "", "user:42", -1.5);

const amounts = fc.oneof(
  { arbitrary: fc.integer({ min: 0, max: 6 }), weight: 8 },
  { arbitrary: fc.integer({ min: 0, max: 1_100 }), weight: 1 },
  { arbitrary: fc.constantFrom(2 ** 31, most - 1, most), weight: 1 },
);

const operations = fc.record({
  does: fc.oneof(
    { arbitrary: fc.constantFrom("hit", "peek"), weight: 6 },
    { arbitrary: fc.constantFrom("inc", "set", "get", "expiresAt"), weight: 4 },
    { arbitrary: fc.constantFrom("reset", "clean", "restore", "hitOther", "peekOther"), weight: 2 },
  ),
  key: keys,
  amount: amounts,
  /** Which policy, of however many there are. */
  which: fc.nat(3),
  /** How far time goes on, and how far behind it the clock then reads, in periods of the first policy. */
  passes: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 2.2, noNaN: true })),
  behind: fc.oneof(
    { arbitrary: fc.constant(0), weight: 4 },
    { arbitrary: fc.double({ min: 0, max: 1, noNaN: true }), weight: 1 },
  ),
});

const factors = fc.constantFrom(1 / 3, 1 / 2, 1, 2, 3);

const runs = fc.record({
  start: fc.constantFrom(0, 1_767_227_321_853),
  factor: fc.record({ limit: factors, rate: factors }),
  list: fc.array(operations, { minLength: 1, maxLength: 60, size: "max" }),
});

/** A limiter's operations, each told the time. */
class Subject {
  #now = 0;
  #options = { clock: () => this.#now, cleanPeriod: most };

  constructor(policies) {
    this.limiter = new RateLimiter(policies, this.#options);
  }

  at(now) {
    this.#now = now;
    return this.limiter;
  }

  /** Goes on with a limiter that was written down and read again. */
  restore(now) {
    const written = JSON.stringify(this.at(now).snapshot());
    this.limiter[Symbol.dispose]();
    this.limiter = RateLimiter.restore(JSON.parse(written), this.#options);
  }
}

/** What a policy may be given: a token bucket is set to no more than it holds, and no bucket flows for ever. */
function amountFor({ algorithm, capacity }, does, amount) {
  if (capacity === undefined) return amount;
  return Math.min(amount, does === "set" && algorithm === "token_bucket" ? capacity : 2 ** 32);
}

function inMemory(policies, { start, factor, list }) {
  const [subject, model] = [new Subject(policies), new Model(policies)];
  const call = policies.map((policy) => forOneCall(policy, factor));
  const shortest = Math.min(...[...policies, ...call].map(periodOf));
  let time = start;
  for (const [position, { does, key, amount, which, passes, behind }] of list.entries()) {
    time += Math.floor(passes * periodOf(policies[0]));
    const now = Math.max(0, time - Math.floor(behind * shortest));
    const chosen = which % policies.length;
    const { name } = policies[chosen];
    const given = amountFor(policies[chosen], does, amount);
    const limiter = subject.at(now);
    const same = (answered, right) =>
      assert.deepEqual(answered, right, `operation ${position}: ${does} at ${now}`);
    switch (does) {
      case "hit":
        same(limiter.peek(key, amount), model.peek(now, key, amount));
        same(limiter.hit(key, amount), model.hit(now, key, amount));
        break;
      case "peek":
        same(limiter.peek(key, amount), model.peek(now, key, amount));
        break;
      case "hitOther":
        same(limiter.hit(key, amount, call), model.hit(now, key, amount, call));
        break;
      case "peekOther":
        same(limiter.peek(key, amount, call), model.peek(now, key, amount, call));
        break;
      case "inc":
        same(limiter.inc(key, given, name), model.inc(now, key, given, chosen));
        break;
      case "set":
        same(limiter.set(key, given, name), model.set(now, key, given, chosen));
        break;
      case "get":
      case "expiresAt":
        same(limiter[does](key, name), model[does](now, key, chosen));
        break;
      case "reset":
        same(limiter.reset(key), model.reset(now, key));
        break;
      case "clean":
        same(limiter.clean(), model.clean(now));
        break;
      case "restore":
        subject.restore(now);
        model.clean(now);
        break;
    }
    same(subject.limiter.size, model.size);
  }
  subject.limiter[Symbol.dispose]();
}

/** The same from states that are stored as JSON. A key that has ended is not stored, so time only goes on. */
function byStep(policies, { start, list }) {
  const model = new Model(policies);
  const stored = new Map();
  let now = start;
  for (const [position, { does, key, amount, which, passes }] of list.entries()) {
    now += Math.floor(passes * periodOf(policies[0]));
    if (["clean", "restore", "hitOther", "peekOther"].includes(does)) continue;
    const chosen = which % policies.length;
    const asks = does === "hit" || does === "peek";
    const given = asks ? amount : amountFor(policies[chosen], does, amount);
    const before = stored.get(key);
    const loaded = before === undefined ? null : JSON.parse(before);
    const stepped = step(policies, loaded, does, given, now, asks ? undefined : policies[chosen].name);
    const right = {
      hit: () => model.hit(now, key, given),
      peek: () => model.peek(now, key, given),
      inc: () => model.inc(now, key, given, chosen),
      set: () => model.set(now, key, given, chosen),
      get: () => model.get(now, key, chosen),
      expiresAt: () => model.expiresAt(now, key, chosen),
      reset: () => model.reset(now, key),
    }[does]();
    const context = `operation ${position}: ${does} at ${now}`;
    if (asks) assert.deepEqual(stepped.decision, right, context);
    else if (does !== "reset") assert.equal(stepped.value, right, context);
    const ends = policies.map((_, each) => model.expiresAt(now, key, each));
    assert.equal(stepped.expiresAt, Math.max(...ends), context);
    assert.equal(stepped.state === null, stepped.expiresAt === 0, context);
    if (stepped.state === null) stored.delete(key);
    else if (stepped.changed) stored.set(key, JSON.stringify(stepped.state));
  }
}

const storable = ({ algorithm, limit }) => algorithm !== "sliding_window" || limit <= 1_000;

for (const [name, policies] of Object.entries(policyLists)) {
  const numRuns = name === "several" ? 500 : 300;

  test(`${name} in memory`, () => {
    fc.assert(fc.property(policies, runs, inMemory), { numRuns });
  });

  test(`${name} by step`, () => {
    fc.assert(
      fc.property(
        policies.filter((list) => list.every(storable)),
        runs,
        byStep,
      ),
      { numRuns },
    );
  });
}
