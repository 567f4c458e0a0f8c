// The package beside its decisions: cleaning, bounds, memory, headers, and messages of errors.

import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { problemBody, RateLimiter, rateLimitHeaders, step, TollgateError } from "tollgate";
import { inFreshProcess } from "../wasm/lib/process.mjs";

const start = 1_767_227_321_000;

/** A limiter whose time is what the test says. */
function timed(policies, options = {}) {
  const time = { now: start };
  const limiter = new RateLimiter(policies, { clock: () => time.now, ...options });
  return { limiter, time };
}

const second = { algorithm: "fix_window_per_key", limit: 3, scale: "1s" };
const hasCode = (code) => (error) => error instanceof TollgateError && error.code === code;

describe("beforeClean", () => {
  test("gets the algorithm, and the key, policy, value and end of each state", () => {
    const beforeClean = mock.fn();
    const policies = [
      { ...second, name: "short" },
      { algorithm: "token_bucket", capacity: 10, refillRate: 1, name: "long" },
    ];
    const { limiter, time } = timed(policies, { beforeClean });
    limiter.hit("a", 2);
    limiter.hit(7n);
    time.now += 5_000;
    assert.equal(limiter.clean(), 2);
    const calls = beforeClean.mock.calls.map((call) => call.arguments);
    assert.deepEqual(calls, [
      [
        "fix_window_per_key",
        [
          { key: "a", policy: "short", value: 2, expiredAt: start + 1_000 },
          { key: 7n, policy: "short", value: 1, expiredAt: start + 1_000 },
        ],
      ],
      [
        "token_bucket",
        [
          { key: "a", policy: "long", value: 8, expiredAt: start + 2_000 },
          { key: 7n, policy: "long", value: 9, expiredAt: start + 1_000 },
        ],
      ],
    ]);
    assert.equal(limiter.size, 0);
  });

  test("is called as hits sweep, a few slots each, once for each key", () => {
    const told = [];
    const beforeClean = (_, entries) => told.push(...entries.map(({ key }) => key));
    const { limiter, time } = timed(second, { beforeClean, cleanPeriod: 100 });
    for (let key = 0; key < 50; key++) limiter.hit(key);
    time.now += 2_000;
    for (let hit = 0; hit < 100; hit++) limiter.hit("other");
    assert.deepEqual(
      told.toSorted((a, b) => a - b),
      Array.from({ length: 50 }, (_, key) => key),
    );
    assert.equal(limiter.size, 1);
  });

  test("is not called for keys that are evicted or reset", () => {
    const beforeClean = mock.fn();
    const { limiter } = timed(second, { beforeClean, maxKeys: 1 });
    for (const key of ["a", "b", "c"]) limiter.hit(key);
    limiter.reset("c");
    assert.equal(limiter.evicted, 2);
    assert.equal(beforeClean.mock.callCount(), 0);
  });

  test("may use the limiter, the key that has just expired included", () => {
    const answers = [];
    const { limiter, time } = timed(second, {
      beforeClean(_, [{ key }]) {
        if (answers.length < 3) answers.push(limiter.get(key), limiter.hit(key, 2).count, limiter.size);
      },
    });
    limiter.hit("a", 3);
    time.now += 1_000;
    limiter.clean();
    assert.deepEqual(answers, [0, 2, 1]);
    assert.equal(limiter.get("a"), 2);
  });

  test("that throws is warned of once, and cleaning goes on", (context) => {
    const warn = context.mock.method(console, "warn", () => undefined);
    const error = new Error("an error");
    const { limiter, time } = timed(second, {
      beforeClean() {
        throw error;
      },
    });
    for (let round = 0; round < 3; round++) {
      limiter.hit("a");
      limiter.hit("b");
      time.now += 1_000;
      assert.equal(limiter.clean(), 2);
      assert.equal(limiter.size, 0);
    }
    assert.equal(warn.mock.callCount(), 1);
    assert.match(warn.mock.calls[0].arguments[0], /beforeClean threw/);
    assert.equal(warn.mock.calls[0].arguments[1], error);
  });
});

describe("a full limiter", () => {
  test("evicts the key that would end soonest, and counts it", () => {
    const { limiter, time } = timed(second, { maxKeys: 3 });
    for (const key of ["a", "b", "c"]) {
      limiter.hit(key, 3);
      time.now += 10;
    }
    assert.equal(limiter.hit("d").allowed, true);
    assert.deepEqual(
      ["a", "b", "c", "d"].map((key) => limiter.get(key)),
      [0, 3, 3, 1],
    );
    assert.deepEqual([limiter.size, limiter.evicted], [3, 1]);
  });

  test("keeps a key that is denied now, however many new ones come", () => {
    const { limiter, time } = timed({ ...second, scale: "1h" }, { maxKeys: 100 });
    for (let hit = 0; hit < 3; hit += 1) limiter.hit("chosen by a client");
    for (let key = 0; key < 10_000; key += 1) {
      time.now += 1;
      assert.equal(limiter.hit(key).allowed, true);
    }
    assert.equal(limiter.hit("chosen by a client").allowed, false);
  });

  test("evicts ended states first, and does not count them", () => {
    const { limiter, time } = timed(second, { maxKeys: 2 });
    limiter.hit("a");
    time.now += 999;
    limiter.hit("b");
    time.now += 1;
    limiter.hit("c");
    assert.deepEqual([limiter.get("b"), limiter.size, limiter.evicted], [1, 2, 0]);
  });

  test('denies under onFull "deny": reason full, until a key expires', () => {
    const { limiter, time } = timed(second, { maxKeys: 1, onFull: "deny" });
    limiter.hit("a");
    time.now += 400;
    const { allowed, reason, violated, retryAfter, remaining } = limiter.hit("b");
    assert.deepEqual(
      { allowed, reason, violated, retryAfter, remaining },
      { allowed: false, reason: "full", violated: [], retryAfter: 600, remaining: 0 },
    );
    assert.throws(() => limiter.inc("b"), hasCode("full"));
    assert.throws(() => limiter.set("b", 1), hasCode("full"));
    assert.deepEqual([limiter.get("b"), limiter.size, limiter.evicted], [0, 1, 0]);
    assert.equal(limiter.hit("a").count, 2);
    time.now += 600;
    assert.equal(limiter.hit("b").allowed, true);
  });

  test("gives no slot to a hit that leaves nothing behind", () => {
    const { limiter } = timed({ ...second, denied: "free" }, { maxKeys: 1 });
    limiter.hit("a");
    limiter.hit("b", 0);
    limiter.hit("b", 4);
    limiter.peek("b");
    limiter.get("b");
    assert.deepEqual([limiter.get("a"), limiter.size, limiter.evicted], [1, 1, 0]);
  });
});

test("keyOlderThan: a key untouched for that long is gone, when read as when swept", () => {
  const { limiter, time } = timed(
    { algorithm: "fix_window", limit: 5, scale: "1d" },
    { keyOlderThan: "1m", beforeClean: (_, entries) => told.push(...entries) },
  );
  const told = [];
  limiter.hit("a", 4);
  time.now += 59_999;
  assert.deepEqual([limiter.get("a"), limiter.expiresAt("a")], [4, time.now + 1]);
  limiter.hit("a");
  time.now += 59_999;
  assert.equal(limiter.peek("a").allowed, false);
  time.now += 1;
  assert.deepEqual([limiter.get("a"), limiter.expiresAt("a"), limiter.peek("a").count], [0, 0, 1]);
  assert.deepEqual(limiter.snapshot().keys, []);
  assert.equal(limiter.clean(), 1);
  assert.deepEqual(told, [{ key: "a", policy: "fix_window", value: 5, expiredAt: time.now }]);
});

describe("the policies of one call", () => {
  const own = { algorithm: "leaky_bucket", capacity: 2, leakRate: 1 };
  const wider = { algorithm: "leaky_bucket", capacity: 10, leakRate: 1 };

  test("give other numbers for that call only", () => {
    const { limiter } = timed(own);
    assert.equal(limiter.hit("a", 5).retryAfter, Number.POSITIVE_INFINITY);
    assert.equal(limiter.peek("a", 5, wider).allowed, true);
    assert.deepEqual([limiter.hit("a", 5, wider).remaining, limiter.hit("a").limit], [5, 2]);
    assert.equal(limiter.hit("a", 1, [wider]).count, 6);
    assert.equal(limiter.get("a"), 6);
  });

  test("must be of the same shape, and as many; limits may be higher or lower", () => {
    const { limiter } = timed(own);
    limiter.hit("a");
    for (const policies of [
      { ...own, per: "1m" },
      { algorithm: "token_bucket", capacity: 2, refillRate: 1 },
      [own, { ...own, name: "again" }],
    ]) {
      assert.throws(() => limiter.hit("a", 1, policies), hasCode("policy_mismatch"));
    }
    assert.equal(limiter.get("a"), 1);
    const { limiter: slide } = timed({ algorithm: "sliding_window", limit: 3, scale: "1s" });
    const other = (limit) => ({ algorithm: "sliding_window", limit, scale: "1s" });
    assert.equal(slide.hit("a", 1, other(2)).limit, 2);
    assert.equal(slide.hit("a", 3, other(4)).remaining, 0);
    assert.deepEqual([slide.hit("a").allowed, slide.get("a")], [false, 4]);
  });
});

test("several policies: one denies and nothing changes", () => {
  const policies = [
    { algorithm: "fix_window", limit: 2, scale: "1s" },
    { algorithm: "fix_window", limit: 100, scale: "1d" },
  ];
  const { limiter, time } = timed(policies);
  limiter.hit("a", 2);
  const before = JSON.stringify(limiter.snapshot());
  const { allowed, policy, violated } = limiter.hit("a");
  assert.deepEqual([allowed, policy, violated], [false, "fix_window", ["fix_window"]]);
  assert.equal(JSON.stringify(limiter.snapshot()), before);
  assert.throws(() => limiter.get("a"), hasCode("unknown_policy"));
  assert.equal(limiter.inc("a", 98, "fix_window-2"), 100);
  time.now += 1_000;
  assert.deepEqual(limiter.hit("a").violated, ["fix_window-2"]);
});

test("a snapshot goes on under other policies", (context) => {
  const warn = context.mock.method(console, "warn", () => undefined);
  const { limiter, time } = timed({ algorithm: "fix_window", limit: 5, scale: "1m" });
  for (const key of ["a", 1, 1n]) limiter.hit(key, 4);
  const snapshot = JSON.parse(JSON.stringify(limiter.snapshot()));
  const restore = (policies) => RateLimiter.restore(snapshot, { clock: () => time.now, policies });
  assert.deepEqual(
    ["a", 1, 1n, "1"].map((key) => restore(undefined).get(key)),
    [4, 4, 4, 0],
  );
  assert.equal(restore({ algorithm: "fix_window", limit: 3, scale: "1m" }).peek("a").allowed, false);
  assert.equal(warn.mock.callCount(), 0);
  const others = [
    { algorithm: "fix_window", limit: 5, scale: "1h" },
    { algorithm: "leaky_bucket", capacity: 5, leakRate: 1, name: "fix_window" },
  ];
  for (const other of others) {
    const restored = restore(other);
    assert.equal(restored.get("a"), 0);
    assert.match(warn.mock.calls.at(-1).arguments[0], /fix_window starts unused/);
    // The former state is kept until its end.
    const back = RateLimiter.restore(restored.snapshot(), {
      clock: () => time.now,
      policies: snapshot.policies,
    });
    assert.equal(back.get("a"), 4);
  }
});

test("a snapshot with a state that cannot be read names its key, and restores nothing", () => {
  const policy = { algorithm: "fix_window", limit: 5, scale: "1m" };
  const problems = {
    "the numbers of a row are not those of one": [[1, 0, 60_000, 60_000, 2, 0, 1]],
    "a state in it is not an array of numbers": ["no"],
    "it holds something that is not an integer": [new Array(2)],
    'the numbers of "fix_window" are not those of a fix_window': [[0, 0, 60_000, 60_000, 2, 1, 1]],
  };
  for (const [problem, states] of Object.entries(problems)) {
    const keys = [
      ["a", [[0, 0, 60_000, 60_000, 2, 0, 1]]],
      [{ bigint: "42" }, states],
    ];
    const snapshot = { version: 4, policies: [policy], keys, names: [] };
    assert.throws(() => RateLimiter.restore(snapshot, { clock: () => 0 }), {
      code: "invalid_state",
      message: `42n: the stored state cannot be read: ${problem}`,
    });
  }
});

test("a stored state whose lists have holes is rejected", () => {
  const policy = { algorithm: "fix_window", limit: 5, scale: "1m" };
  const head = [0, 60_000, 60_000, 2];
  for (const rows of [
    new Array(1),
    [new Array(2)],
    [["fix_window", new Array(6)]],
    [["fix_window", [...head, ...new Array(2)]]],
    [["fix_window", [...head, 0, 1, ...new Array(10)]]],
  ])
    assert.throws(() => step(policy, { version: 4, rows }, "hit", 1, 0), { code: "invalid_state" });
});

test("a log that is longer than a call takes arguments comes back from a snapshot", () => {
  const { limiter, time } = timed({ algorithm: "sliding_window", limit: 150_000, scale: "1d" });
  for (let hit = 0; hit < 150_000; hit++) {
    time.now += 1;
    limiter.hit("a");
  }
  const again = RateLimiter.restore(limiter.snapshot(), { clock: () => time.now });
  assert.deepEqual(again.peek("a"), limiter.peek("a"));
  assert.equal(again.get("a"), 150_000);
});

test("numbers at the ends of their range", () => {
  const most = Number.MAX_SAFE_INTEGER;
  const { limiter } = timed({ algorithm: "fix_window", limit: most, scale: "1d" });
  assert.deepEqual([limiter.hit("a", most).allowed, limiter.hit("a").allowed], [true, false]);
  const { limiter: bucket } = timed({ algorithm: "token_bucket", capacity: 1, refillRate: 1, per: "1m" });
  bucket.inc("a", most);
  assert.ok(bucket.hit("a").retryAfter >= most);
  assert.equal(bucket.clean(), 0);
});

describe("a limiter that is disposed of", () => {
  test("throws an error at every operation", () => {
    const { limiter } = timed(second);
    limiter.hit("a");
    limiter[Symbol.dispose]();
    for (const work of [
      () => limiter.hit("a"),
      () => limiter.peek("a"),
      () => limiter.inc("a"),
      () => limiter.set("a", 1),
      () => limiter.get("a"),
      () => limiter.expiresAt("a"),
      () => limiter.reset("a"),
      () => limiter.clean(),
      () => limiter.snapshot(),
      () => limiter.size,
      () => limiter.evicted,
    ]) {
      assert.throws(work, hasCode("disposed"), String(work));
    }
  });

  test("may be disposed of again, and harms no other of the same policies", () => {
    const { limiter } = timed(second);
    const { limiter: other } = timed(second);
    limiter[Symbol.dispose]();
    limiter[Symbol.dispose]();
    assert.equal(other.hit("a").count, 1);
  });

  test("ends with its block", () => {
    let kept;
    {
      using limiter = new RateLimiter(second);
      kept = limiter;
    }
    assert.throws(() => kept.hit("a"), hasCode("disposed"));
  });
});

describe("headers", () => {
  const policies = [
    { name: "burst", algorithm: "token_bucket", capacity: 10, refillRate: 4 },
    { name: 'quo"te\\d', algorithm: "fix_window", limit: 3, scale: "1m" },
    { name: "quick", algorithm: "fix_window_per_key", limit: 100, scale: "250ms" },
  ];
  const described = '"burst";q=10;w=3, "quo\\"te\\\\d";q=3;w=60, "quick";q=100';

  test("have the remaining quota and the time until more", () => {
    const { limiter, time } = timed(policies);
    time.now = 1_767_227_330_500;
    const allowed = limiter.hit("a", 3);
    assert.deepEqual(rateLimitHeaders(allowed, policies), {
      "RateLimit-Policy": described,
      RateLimit: '"quo\\"te\\\\d";r=0;t=10',
    });
    const denied = limiter.hit("a");
    assert.deepEqual(rateLimitHeaders(denied, limiter.policies, { legacy: true }), {
      "RateLimit-Policy": described,
      RateLimit: '"quo\\"te\\\\d";r=0;t=10',
      "Retry-After": "10",
      "X-RateLimit-Limit": "3",
      "X-RateLimit-Remaining": "0",
      "X-RateLimit-Reset": "10",
    });
    assert.deepEqual(JSON.parse(problemBody(denied, policies)), {
      type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
      title: "Request cannot be satisfied as assigned quota has been exceeded",
      status: 429,
      "violated-policies": ['quo"te\\d'],
    });
  });

  test("have the quota and the window of every algorithm", () => {
    const windows = ["fix_window", "fix_window_per_key", "sliding_window", "sliding_counter"];
    const bucket = { capacity: 7, per: "1m" };
    const policies = [
      ...windows.map((algorithm) => ({ algorithm, limit: 7, scale: "90s" })),
      { algorithm: "token_bucket", refillRate: 2, ...bucket },
      { algorithm: "leaky_bucket", leakRate: 4, ...bucket },
    ];
    const { limiter } = timed(policies);
    const { "RateLimit-Policy": quotas } = rateLimitHeaders(limiter.hit("a"), policies);
    const expected = [...windows.map((name) => `"${name}";q=7;w=90`), '"token_bucket";q=7;w=210'];
    assert.deepEqual(quotas.split(", "), [...expected, '"leaky_bucket";q=7;w=105']);
  });

  test("have no Retry-After for a cost that can never fit", () => {
    const { limiter } = timed(policies);
    assert.equal("Retry-After" in rateLimitHeaders(limiter.hit("a", 11), policies), false);
  });

  test("have room for as many policies as there may be, with the longest names and the largest numbers", () => {
    const most = Number.MAX_SAFE_INTEGER;
    const ends = Array.from({ length: 32 }, (_, at) => String(at).padStart(2, "0"));
    const names = ends.map((end) => '"'.repeat(62) + end);
    const quoted = ends.map((end) => `"${'\\"'.repeat(62)}${end}"`);
    const numbers = { capacity: most, refillRate: most, per: most };
    const policies = names.map((name) => ({ name, algorithm: "token_bucket", ...numbers }));
    const waits = { retryAfter: most, resetAfter: most, moreAfter: most };
    const decision = {
      allowed: false,
      limit: most,
      remaining: most,
      ...waits,
      policy: names[31],
      violated: names,
    };
    assert.deepEqual(rateLimitHeaders(decision, policies, { legacy: true }), {
      "RateLimit-Policy": quoted.map((name) => `${name};q=999999999999999;w=9007199254741`).join(", "),
      RateLimit: `${quoted[31]};r=999999999999999;t=9007199254741`,
      "Retry-After": "9007199254741",
      "X-RateLimit-Limit": `${most}`,
      "X-RateLimit-Remaining": `${most}`,
      "X-RateLimit-Reset": "9007199254741",
    });
    assert.deepEqual(JSON.parse(problemBody(decision, policies))["violated-policies"], names);
  });

  test("are for decisions under these policies, and a problem for those that were denied", () => {
    const { limiter } = timed(policies);
    const decision = limiter.hit("a");
    const isRefused = hasCode("invalid_decision");
    assert.throws(() => problemBody(decision, policies), isRefused);
    assert.throws(() => rateLimitHeaders(decision, second), isRefused);
    const denied = limiter.peek("a", 5);
    assert.throws(() => rateLimitHeaders({ ...denied, violated: ["nobody"] }, policies), isRefused);
    assert.throws(() => problemBody({ ...denied, violated: ["nobody"] }, policies), isRefused);
  });

  test("are for policies that a limiter would take", () => {
    const slow = { algorithm: "leaky_bucket", capacity: Number.MAX_SAFE_INTEGER, leakRate: 1, name: "quick" };
    const decision = { ...timed(policies).limiter.peek("a", 101), violated: ["quick"], policy: "quick" };
    const isRefused = { code: "invalid_policy", message: /^capacity: 9007199254740991 / };
    for (const told of [rateLimitHeaders, problemBody]) {
      assert.throws(() => told(decision, slow), isRefused);
      assert.ok(told(decision, { ...slow, per: 1 }));
    }
  });
});

describe("where wasm cannot be compiled", () => {
  const tryWith = (...args) => inFreshProcess("no-compiling", { args });

  test("the error names a page's Content-Security-Policy, and what to allow", () => {
    const words = "Refused to compile: 'unsafe-eval' is not allowed by the Content Security Policy";
    const { name, code, message, cause } = tryWith("CompileError", words);
    assert.deepEqual([name, code, cause], ["TollgateError", "wasm_blocked", words]);
    assert.match(message, /wasm-unsafe-eval/);
  });

  test("another reason is not taken for that", () => {
    assert.equal(tryWith("RangeError", "out of memory").name, "RangeError");
  });
});

test("importing compiles nothing", () => {
  const compiled = inFreshProcess("compiled-when-needed");
  assert.deepEqual(compiled, [0, 1]);
});

test("a snapshot of one key holds that key alone", () => {
  const limiter = new RateLimiter({ algorithm: "fix_window", limit: 9, scale: "1h" }, { clock: () => 5_000 });
  for (const key of ["a", "b", "b"]) limiter.hit(key);
  const one = RateLimiter.restore(limiter.snapshot("b"), { clock: () => 5_000 });
  assert.deepEqual([one.size, one.get("b"), one.get("a")], [1, 2, 0]);
  assert.deepEqual(limiter.snapshot("c").keys, []);
  assert.throws(() => limiter.snapshot({}), { code: "invalid_key" });
});

test("step: a reset changes what is stored, also if it has ended, and nothing else", () => {
  const { state } = step(second, null, "hit", 1, start);
  const changes = (stored, now) => step(second, stored, "reset", 0, now).changed;
  assert.deepEqual(
    [changes(null, start), changes(state, start), changes(state, start + 1_000)],
    [false, true, true],
  );
});
