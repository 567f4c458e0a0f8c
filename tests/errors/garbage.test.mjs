// Any value for every argument: a TollgateError with a known code, or a valid result.
// Never a trap, never another error, never a changed state.

import assert from "node:assert/strict";
import { test } from "node:test";
import { problemBody, RateLimiter, rateLimitHeaders, step, TollgateError } from "tollgate";
import fc from "../lib/properties.mjs";

const codes = new Set([
  "invalid_policy",
  "unknown_algorithm",
  "unknown_field",
  "invalid_key",
  "invalid_cost",
  "invalid_count",
  "invalid_time",
  "invalid_option",
  "invalid_operation",
  "invalid_decision",
  "policy_mismatch",
  "reserve_only",
  "unknown_policy",
  "full",
  "invalid_state",
  "unsupported_version",
]);

const now = 1_767_227_321_853;
const most = Number.MAX_SAFE_INTEGER;

/** Whatever JavaScript has, and what is nearly right. */
const strange = fc.oneof(
  fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withObjectString: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
    withUnicodeString: true,
  }),
  fc.constantFrom(undefined, null, Number.NaN, -1, -0, 0.5, 1, most, most + 1, 2 ** 64, 1e300),
  fc.constantFrom(
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    true,
    1n,
    -1n,
    2n ** 70n,
    "1",
    "",
    "1s",
  ),
  fc.constantFrom("fix_window", "token_bucket", "\x1f", "\x1e", "\ud800", "a\x1fb", "é", "a".repeat(70_000)),
  fc.constantFrom(
    [],
    {},
    Symbol("s"),
    Symbol.iterator,
    () => 1,

    new Proxy({}, {}),
    Object.create(null),
  ),
);

const durations = fc.oneof(fc.constantFrom(1_000, "1s", "1m", most), strange);
const wholes = fc.oneof(fc.constantFrom(1, 5, 1_000, most), strange);
const algorithms = [
  "fix_window",
  "fix_window_per_key",
  "sliding_window",
  "sliding_counter",
  "token_bucket",
  "leaky_bucket",
  "concurrency",
];

/** Objects that look like policies, each field right or anything at all. */
const nearlyPolicies = fc.record(
  {
    algorithm: fc.oneof(fc.constantFrom(...algorithms), strange),
    limit: wholes,
    scale: durations,
    capacity: wholes,
    refillRate: wholes,
    refill_rate: wholes,
    leakRate: wholes,
    per: durations,
    ttl: durations,
    name: fc.oneof(fc.constantFrom("a", "b"), strange),
    denied: fc.oneof(fc.constantFrom("count", "free"), strange),
    other: strange,
  },
  { requiredKeys: [] },
);
const windowsNearly = fc.record(
  { algorithm: fc.constantFrom(...algorithms.slice(0, 4)), limit: wholes, scale: durations, name: strange },
  { requiredKeys: ["algorithm", "limit", "scale"] },
);
const slotsNearly = fc.record(
  { algorithm: fc.constant("concurrency"), limit: wholes, ttl: durations, name: strange },
  { requiredKeys: ["algorithm", "limit", "ttl"] },
);
const strangePolicies = fc.oneof(
  strange,
  nearlyPolicies,
  windowsNearly,
  slotsNearly,
  fc.array(fc.oneof(nearlyPolicies, windowsNearly, slotsNearly, strange), { maxLength: 40 }),
);

/** Does it, and answers what came of it; only an error of ours may come out. */
function outcome(work) {
  try {
    return { answer: work() };
  } catch (error) {
    if (!(error instanceof TollgateError) || !codes.has(error.code)) {
      throw new Error("another error came out", { cause: error });
    }
    assert.equal(error.name, "TollgateError");
    assert.match(error.message, /\S/);
    return { code: error.code };
  }
}

const isWhole = (number) => Number.isSafeInteger(number) && number >= 0;
const isWait = (number) => number === Number.POSITIVE_INFINITY || (Number.isInteger(number) && number >= 0);

function assertIsDecision(decision) {
  const { allowed, count, limit, remaining, retryAfter, resetAfter, moreAfter, policy, violated } = decision;
  assert.equal(typeof allowed, "boolean");
  assert.ok([count, resetAfter, moreAfter].every((number) => Number.isInteger(number) && number >= 0));
  assert.ok(isWhole(limit) && isWhole(remaining) && remaining <= limit);
  assert.ok(isWait(retryAfter) && (retryAfter === 0) === allowed);
  assert.equal(moreAfter === 0, remaining === limit);
  assert.equal(typeof policy, "string");
  assert.equal(violated.length === 0, allowed);
}

const perSecond = { name: "second", algorithm: "fix_window", limit: 5, scale: "1s" };
const bucket = { name: "bucket", algorithm: "token_bucket", capacity: 9, refillRate: 3 };
const slide = { name: "slide", algorithm: "sliding_window", limit: 4, scale: "1s" };
const slots = { name: "slots", algorithm: "concurrency", limit: 4, ttl: "1s" };

/** A limiter in use, and what it holds as text. */
function inUse(policies, clock = () => now) {
  const limiter = new RateLimiter(policies, { clock });
  limiter.hit("user:42", 2);
  limiter.hit(7n);
  return { limiter, held: () => JSON.stringify(limiter.snapshot()) };
}

const subjects = [perSecond, bucket, slide, [perSecond, bucket, slide]].map((policies) => inUse(policies));

const always = (property) => fc.assert(property, { numRuns: 1_500 });
const isKey = (key) => typeof key === "string" || typeof key === "bigint" || Number.isFinite(key);

test("as policies", () => {
  always(
    fc.property(strangePolicies, (policies) => {
      const { answer, code } = outcome(() => new RateLimiter(policies, { clock: () => now }));
      if (code) {
        assert.equal(outcome(() => step(policies, null, "hit", 1, now)).code, code);
        return;
      }
      if (answer.policies.some(({ algorithm }) => algorithm === "concurrency")) {
        // Slots are only reserved.
        assert.equal(outcome(() => answer.hit("user:42")).code, "reserve_only");
        assert.equal(outcome(() => step(policies, null, "hit", 1, now)).code, "reserve_only");
        assertIsDecision(answer.reserve("user:42").decision);
        answer[Symbol.dispose]();
        return;
      }
      assertIsDecision(answer.hit("user:42"));
      const stepped = outcome(() => step(policies, null, "hit", 1, now));
      // A log that is stored is bounded; all else that a limiter takes, a step takes.
      assert.ok(stepped.answer || answer.policies.some(({ algorithm }) => algorithm === "sliding_window"));
      answer[Symbol.dispose]();
    }),
  );
});

test("as the policies of one call", () => {
  always(
    fc.property(strangePolicies, (policies) => {
      if (policies === undefined) return;
      for (const { limiter, held } of subjects) {
        const before = held();
        const { code } = outcome(() => assertIsDecision(limiter.peek("user:42", 1, policies)));
        assert.equal(held(), before);
        assert.equal(outcome(() => limiter.hit("one:time", 1, policies)).code, code);
        if (!code) limiter.reset("one:time");
        assert.equal(held(), before);
      }
    }),
  );
});

test("as a key", () => {
  always(
    fc.property(strange, (key) => {
      for (const { limiter, held } of subjects) {
        const before = held();
        for (const work of [
          () => limiter.hit(key),
          () => limiter.peek(key),
          () => limiter.inc(key, 1, limiter.policies[0].name),
          () => limiter.set(key, 1, limiter.policies[0].name),
          () => limiter.get(key, limiter.policies[0].name),
          () => limiter.expiresAt(key, limiter.policies[0].name),
          () => limiter.reset(key),
        ]) {
          const { code } = outcome(work);
          assert.equal(code, isKey(key) ? undefined : "invalid_key");
        }
        if (isKey(key))
          assert.equal(
            limiter.get(key, limiter.policies[0].name),
            limiter.get("unknown", limiter.policies[0].name),
          );
        assert.equal(held(), before);
      }
    }),
  );
});

/** Whether a value is an object and nothing more special. */
function isPlain(value) {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

test("as a cost", () => {
  always(
    fc.property(strange, (cost) => {
      if (cost === undefined) return;
      for (const { limiter, held } of subjects) {
        const before = held();
        const { name } = limiter.policies[0];
        // An object is costs by policy, and none of these names is one.
        const isByPolicy = isPlain(cost);
        const named = isByPolicy && Object.keys(cost).length > 0;
        const expected = isWhole(cost) ? undefined : named ? "unknown_policy" : "invalid_cost";
        assert.equal(outcome(() => assertIsDecision(limiter.peek("user:42", cost))).code, expected);
        assert.equal(held(), before);
        assert.equal(outcome(() => limiter.hit("one:time", cost)).code, expected);
        assert.equal(outcome(() => limiter.reserve("one:time", cost)).code, expected);
        const isInc = Number.isSafeInteger(cost);
        assert.equal(
          outcome(() => limiter.inc("one:time", cost, name)).code,
          isInc ? undefined : "invalid_cost",
        );
        limiter.reset("one:time", { reservations: true });
        assert.equal(held(), before);
      }
    }),
  );
});

test("as a count", () => {
  always(
    fc.property(strange, (count) => {
      for (const { limiter, held } of subjects) {
        const before = held();
        const [{ name, capacity = most }] = limiter.policies;
        const { code } = outcome(() => limiter.set("one:time", count, name));
        assert.equal(code, isWhole(count) && count <= capacity ? undefined : "invalid_count");
        limiter.reset("one:time");
        assert.equal(held(), before);
      }
    }),
  );
});

test("as a policy's name", () => {
  always(
    fc.property(strange, (name) => {
      for (const { limiter, held } of subjects) {
        const before = held();
        const known = limiter.policies.length === 1 ? undefined : null;
        for (const work of [
          () => limiter.inc("user:42", 1, name),
          () => limiter.set("user:42", 1, name),
          () => limiter.get("user:42", name),
          () => limiter.expiresAt("user:42", name),
        ]) {
          if (name === known) continue;
          assert.equal(outcome(work).code, "unknown_policy");
        }
        assert.equal(held(), before);
      }
    }),
  );
});

test("as options", () => {
  const given = fc.oneof(
    strange,
    fc.record(
      {
        clock: fc.oneof(
          fc.constant(() => now),
          strange,
        ),
        maxKeys: fc.oneof(fc.constantFrom(1, 2, 16_000_000, 16_000_001), strange),
        onFull: fc.oneof(fc.constantFrom("evict", "deny"), strange),
        cleanPeriod: durations,
        keyOlderThan: durations,
        beforeClean: fc.oneof(
          fc.constant(() => undefined),
          strange,
        ),
        other: strange,
      },
      { requiredKeys: [] },
    ),
  );
  const snapshot = subjects[0].limiter.snapshot();
  always(
    fc.property(given, (options) => {
      const { answer, code } = outcome(() => new RateLimiter(perSecond, options));
      assert.equal(answer === undefined, code === "invalid_option");
      // What calls the clock gets what the clock answers, and only then.
      if (answer) outcome(() => assertIsDecision(answer.hit("user:42")));
      const restored = outcome(() => RateLimiter.restore(snapshot, options));
      if (code) assert.ok(["invalid_option", "invalid_time"].includes(restored.code));
    }),
  );
});

test("as the time that the clock returns", () => {
  let time = now;
  const { limiter, held } = inUse(perSecond, () => time);
  always(
    fc.property(strange, (answered) => {
      const before = held();
      const isTime = typeof answered === "number" && answered >= 0 && answered <= most;
      const works = [
        () => limiter.hit("user:42", 0),
        () => limiter.peek("user:42"),
        () => limiter.get("user:42"),
        () => limiter.expiresAt("user:42"),
        () => limiter.snapshot(),
        ...(isTime
          ? []
          : [() => limiter.hit("user:42"), () => limiter.inc("user:42"), () => limiter.set("user:42", 1)]),
        ...(isTime ? [] : [() => limiter.clean(), () => RateLimiter.restore(limiter.snapshot())]),
      ];
      time = answered;
      try {
        for (const work of works) assert.equal(outcome(work).code, isTime ? undefined : "invalid_time");
      } finally {
        time = now;
      }
      if (!isTime) assert.equal(held(), before);
      // Another time may have swept it away, or taken its window along.
      limiter.set("user:42", 2);
    }),
  );
});

/** Returns the keys of a snapshot with names instead of their numbers. */
const byName = ({ policies, keys, names }) => {
  const all = [...policies.map(({ name, algorithm }) => name ?? algorithm), ...names];
  return keys.map(([key, rows]) => [key, rows.map(([name, ...row]) => [all[name], ...row])]);
};

test("as a snapshot", () => {
  const states = fc.oneof(fc.array(fc.oneof(fc.array(fc.oneof(fc.integer(), strange)), strange)), strange);
  const numbers = fc.array(fc.array(fc.integer({ min: -2, max: 2_000_000 }), { maxLength: 4 }), {
    maxLength: 2,
  });
  const row = fc
    .tuple(
      fc.constantFrom(0, 0, 1, 2),
      fc.nat({ max: 8 }),
      fc.constantFrom(1_000, 60_000),
      fc.nat({ max: 2_000_000 }),
      fc.array(fc.nat({ max: 2_000_000 }), { maxLength: 4 }),
    )
    .map(([name, algorithm, scale, ends, state]) => [name, algorithm, scale, ends, state.length, ...state]);
  const rows = fc.array(row, { maxLength: 3 });
  const keys = fc.oneof(fc.constantFrom("a", 1, { bigint: "1" }, { bigint: "x" }, { bigint: "-0" }), strange);
  const snapshots = fc.oneof(
    strange,
    fc.record(
      {
        version: fc.oneof(fc.constant(4), strange),
        policies: fc.oneof(fc.constantFrom([perSecond], [bucket], [slide], [slots]), strangePolicies),
        keys: fc.oneof(fc.array(fc.oneof(fc.tuple(keys, fc.oneof(numbers, rows, states)), strange)), strange),
        names: fc.oneof(fc.array(fc.oneof(fc.constantFrom("a", "b"), strange)), strange),
      },
      { requiredKeys: [] },
    ),
    fc.record({
      version: fc.constant(4),
      policies: fc.constantFrom([perSecond], [bucket], [slide], [slots]),
      keys: fc.array(fc.tuple(fc.constantFrom("a", 1, { bigint: "1" }), rows), { maxLength: 3 }),
      names: fc.array(fc.constantFrom("a", "b"), { maxLength: 2 }),
    }),
    fc.record({
      version: fc.constant(4),
      policies: fc.constantFrom([perSecond], [bucket], [slide], [slots]),
      keys: fc.array(fc.tuple(fc.constantFrom("a", 1, { bigint: "1" }), numbers), { maxLength: 3 }),
      names: fc.constant([]),
    }),
  );
  always(
    fc.property(snapshots, (snapshot) => {
      const { answer } = outcome(() => RateLimiter.restore(snapshot, { clock: () => 1_000_000 }));
      if (answer === undefined) return;
      const isSlots = answer.policies.some(({ algorithm }) => algorithm === "concurrency");
      assertIsDecision(isSlots ? answer.reserve("a").decision : answer.hit("a"));
      const again = JSON.parse(JSON.stringify(answer.snapshot()));
      const restored = RateLimiter.restore(again, { clock: () => 1_000_000 }).snapshot();
      assert.deepEqual(byName(restored), byName(again));
      answer[Symbol.dispose]();
    }),
  );
});

test("as a state", () => {
  const numbers = fc.array(fc.integer({ min: -2, max: 2_000_000 }), { maxLength: 4 });
  const open = fc.array(fc.array(fc.nat(), { minLength: 10, maxLength: 10 }), { maxLength: 2 });
  const names = fc.constantFrom("second", "bucket", "slide", "slots", "other");
  const row = fc.tuple(
    fc.oneof(names, strange),
    fc.oneof(numbers, fc.array(strange), fc.sparseArray(fc.nat()), strange),
  );
  const rowNearly = fc
    .tuple(names, fc.nat({ max: 8 }), fc.constantFrom(1_000, 1, most), numbers, open)
    .map(([name, algorithm, scale, state, parts]) => [
      name,
      [algorithm, scale, 2_000_000, state.length, ...state, ...parts.flat()],
    ]);
  const states = fc.oneof(
    strange,
    fc.record(
      {
        version: fc.oneof(fc.constant(4), strange),
        rows: fc.oneof(
          fc.array(fc.oneof(row, rowNearly, strange), { maxLength: 3 }),
          fc.sparseArray(row, { maxLength: 3 }),
          strange,
        ),
      },
      { requiredKeys: [] },
    ),
    fc.record({ version: fc.constant(4), rows: fc.array(rowNearly, { maxLength: 3 }) }),
  );
  always(
    fc.property(states, fc.constantFrom(perSecond, bucket, slide, slots), (state, policy) => {
      const operation = policy === slots ? "peek" : "hit";
      const { answer } = outcome(() => step(policy, state, operation, 1, 1_000_000));
      if (answer === undefined) return;
      assertIsDecision(answer.decision);
      outcome(() => step(policy, answer.state, "peek", 1, 1_000_000));
    }),
  );
});

test("as the other arguments of a step", () => {
  const operations = fc.oneof(
    fc.constantFrom("hit", "peek", "inc", "set", "get", "expiresAt", "reset"),
    strange,
  );
  const names = fc.oneof(fc.constantFrom(undefined, "second"), strange);
  const amounts = fc.oneof(fc.constantFrom(0, 1), strange);
  const times = fc.oneof(fc.constant(now), strange);
  always(
    fc.property(operations, amounts, times, names, (operation, amount, time, name) => {
      const { answer } = outcome(() => step(perSecond, null, operation, amount, time, name));
      if (answer?.decision) assertIsDecision(answer.decision);
    }),
  );
});

test("as a decision, its policies and options, for headers", () => {
  const { limiter } = subjects[3];
  const right = limiter.peek("user:42");
  const denied = limiter.peek("user:42", 5);
  const decisions = fc.oneof(
    strange,
    fc.constantFrom(right, denied),
    fc
      .tuple(fc.constantFrom(right, denied), fc.constantFrom(...Object.keys(right)), strange)
      .map(([decision, field, value]) => ({ ...decision, [field]: value })),
  );
  const policies = fc.oneof({ arbitrary: fc.constant(limiter.policies), weight: 4 }, strangePolicies);
  const options = fc.oneof(fc.constant(undefined), fc.record({ legacy: strange }), strange);
  always(
    fc.property(decisions, policies, options, (decision, given, legacy) => {
      const { answer } = outcome(() => rateLimitHeaders(decision, given, legacy));
      if (answer) {
        assert.ok(Object.entries(answer).every((entry) => entry.every((text) => /^[ -~]+$/.test(text))));
        assert.match(answer.RateLimit, /^".*";r=\d+(;t=[1-9]\d*)?$/);
      }
      const body = outcome(() => problemBody(decision, given)).answer;
      if (body === undefined) return;
      const { status, "violated-policies": violated } = JSON.parse(body);
      assert.deepEqual([status, new Set(violated)], [429, new Set(decision.violated)]);
    }),
  );
});

test("an error that a getter throws reaches the caller, and changes nothing", () => {
  const own = new Error("own");
  const thrower = () => {
    throw own;
  };
  const trap = new Proxy({}, { get: thrower, ownKeys: thrower });
  const { limiter, held } = inUse(perSecond);
  const before = held();
  const { clock } = {
    get clock() {
      return thrower;
    },
  };
  for (const work of [
    () => new RateLimiter(trap),
    () => new RateLimiter(perSecond, trap),
    () => limiter.hit("user:42", 1, trap),
    () => RateLimiter.restore(trap),
    () => step(perSecond, trap, "hit", 1, now),
    () => rateLimitHeaders(trap, perSecond),
    () => new RateLimiter(perSecond, { clock }).hit("user:42"),
  ]) {
    assert.throws(work, (error) => error === own);
  }
  assert.equal(held(), before);
});

test("a clock or a policy that uses the limiter during a call finds every key in its own slot", () => {
  let inside = () => undefined;
  const limiter = new RateLimiter(perSecond, {
    clock() {
      const work = inside;
      inside = () => undefined;
      work();
      return now;
    },
  });
  const readsAs = (work) => ({
    ...perSecond,
    get limit() {
      work();
      return 5;
    },
  });
  const swap = () => {
    limiter.reset("a");
    limiter.hit("b", 3);
  };
  limiter.hit("a", 2);
  inside = swap;
  assert.equal(limiter.hit("a").count, 1);
  assert.equal(limiter.get("b"), 3);
  limiter.reset("b");
  inside = swap;
  assert.equal(limiter.get("a"), 0);
  limiter.reset("b");
  limiter.hit("a", 2);
  assert.equal(limiter.hit("a", 1, readsAs(swap)).count, 1);
  assert.equal(limiter.get("b"), 3);
});
