// Exceptions in the npm package: what a key with one decides, what is stored of it, and which arguments are accepted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hitAll, Ledger, problemBody, RateLimiter, rateLimitHeaders } from "tollgate";

const hour = 3_600_000;
const day = 24 * hour;
const api = { name: "api", algorithm: "fix_window", limit: 5, scale: "1h" };
const bucket = { name: "bucket", algorithm: "token_bucket", capacity: 5, refillRate: 1, per: "1h" };
const ban = { algorithm: "ban", after: 3, scale: "10m", for: "1h" };

/** A limiter under a clock of its own. */
function limiterOf(policies, options = {}) {
  const time = { now: 500_000 * hour };
  return [new RateLimiter(policies, { clock: () => time.now, ...options }), time];
}

const throughJson = (value) => JSON.parse(JSON.stringify(value));

test("an exception has other numbers for its key until its end", () => {
  const [limiter, time] = limiterOf([api, bucket]);
  const until = time.now + 30 * 60_000;
  assert.equal(limiter.except("a", { api: { limit: 50 }, bucket: { capacity: 40 } }, { for: "30m" }), until);
  assert.deepEqual(limiter.exceptions("a"), {
    until,
    policies: { api: { limit: 50 }, bucket: { capacity: 40 } },
  });
  assert.equal(limiter.get("a", "bucket"), 40);
  assert.equal(limiter.hit("a", 30).allowed, true);
  assert.equal(limiter.peek("a", 11).violated.join(), "bucket");
  assert.equal(limiter.hit("b", 6).allowed, false);
  assert.equal(limiter.exceptions("b"), null);
  time.now = until - 1;
  assert.equal(limiter.hit("a", 10).allowed, true);
  time.now = until;
  assert.equal(limiter.exceptions("a"), null);
  const denied = limiter.hit("a");
  assert.deepEqual([denied.allowed, denied.violated, denied.limit], [false, ["api", "bucket"], 5]);
});

test("the fields of an exception stand before those of a call, and these before the policy's own", () => {
  const [limiter] = limiterOf(bucket);
  limiter.except("a", { capacity: 100 }, { for: "1d" });
  const call = { ...bucket, capacity: 20, refillRate: 7 };
  const decision = limiter.hit("a", 50, call);
  assert.deepEqual([decision.limit, decision.moreAfter], [100, Math.ceil(hour / 7)]);
  limiter.except("b", { refillRate: 2 }, { for: "1d" });
  const other = limiter.hit("b", 10, call);
  assert.deepEqual([other.limit, other.moreAfter], [20, hour / 2]);
  // Fields of other algorithms are ignored.
  limiter.except("c", { bucket: { limit: 1, leakRate: 1, after: 1 } }, { for: "1d" });
  assert.equal(limiter.hit("c", 5).limit, 5);
});

test("a key that is allowed is never limited, banned or charged", () => {
  const [limiter, time] = limiterOf([api, ban, { name: "running", algorithm: "concurrency", limit: 1 }]);
  limiter.ban("office", "1d");
  limiter.except("office", { allow: true }, { for: "1h" });
  assert.deepEqual(limiter.exceptions("office"), { until: time.now + hour, allow: true });
  const reservations = Array.from({ length: 20 }, () => limiter.reserve("office", 1_000));
  assert.ok(reservations.every(({ allowed }) => allowed));
  const [first, second] = reservations;
  assert.equal(first.decision.remaining, Number.MAX_SAFE_INTEGER);
  assert.equal(first.settle(500), "settled");
  assert.equal(second.extend("2h"), "extended");
  assert.equal(limiter.get("office", "api"), 0);
  time.now += hour;
  // Neither those that expired under it nor one that is settled after it are charged.
  assert.equal(second.settle({ api: 7 }), "settled");
  assert.equal(limiter.get("office", "api"), 0);
  assert.equal(limiter.get("office", "running"), 0);
  assert.equal(limiter.reserve("office").decision.reason, "banned");
});

test("a key that is denied is denied until the end, and counts no violation", () => {
  const [limiter, time] = limiterOf([api, ban]);
  limiter.hit("token", 4);
  limiter.except("token", { deny: true }, { until: new Date(time.now + 90_000) });
  for (let hit = 0; hit < 9; hit++) {
    const { resetAfter, ...denied } = limiter.hit("token");
    assert.equal(resetAfter, hour);
    assert.deepEqual(denied, {
      allowed: false,
      count: 4,
      limit: 5,
      remaining: 0,
      retryAfter: 90_000,
      moreAfter: 90_000,
      policy: "api",
      violated: [],
      reason: "denied",
    });
  }
  assert.equal(limiter.reserve("token").allowed, false);
  assert.equal(limiter.peek("token", 2).retryAfter, hour);
  assert.equal(limiter.peek("token", 6).retryAfter, Number.POSITIVE_INFINITY);
  const denied = limiter.hit("token");
  assert.equal(rateLimitHeaders(denied, [api, ban])["Retry-After"], "90");
  assert.match(rateLimitHeaders(denied, [api, ban]).RateLimit, /^"api";r=0;t=90$/);
  assert.match(problemBody(denied, [api, ban]), /abnormal-usage-detected/);
  assert.equal(
    hitAll([
      { limiter, key: "token" },
      { limiter, key: "other" },
    ]).allowed,
    false,
  );
  assert.equal(limiter.get("token", "ban"), 0);
  time.now += 90_000;
  assert.equal(limiter.hit("token").allowed, true);
});

test("an exception replaces the one before it, and null lifts it", () => {
  const [limiter, time] = limiterOf([api, bucket]);
  limiter.except("a", { api: { limit: 50 } }, { for: "1d" });
  const until = limiter.except("a", { bucket: { capacity: 9 } }, { for: "2h" });
  assert.deepEqual(limiter.exceptions("a"), { until, policies: { bucket: { capacity: 9 } } });
  assert.equal(limiter.except("a", null), until);
  assert.equal(limiter.except("a", null), 0);
  assert.equal(limiter.except("never", null), 0);
  assert.equal(limiter.exceptions("a"), null);
  limiter.except("a", { deny: true }, { for: 1 });
  time.now += 1;
  assert.equal(limiter.except("a", null), 0);
});

test("reset leaves an exception, and so does a key that grows stale", () => {
  const [limiter, time] = limiterOf(api, { keyOlderThan: "10m" });
  limiter.hit("a", 5);
  limiter.except("a", { limit: 9 }, { for: "1d" });
  assert.equal(limiter.reset("a"), true);
  assert.equal(limiter.reset("a", { reservations: true }), true);
  assert.equal(limiter.hit("a", 9).allowed, true);
  time.now += 11 * 60_000;
  limiter.clean();
  assert.equal(limiter.get("a"), 0);
  assert.deepEqual(limiter.exceptions("a")?.policies, { api: { limit: 9 } });
  time.now += day;
  assert.equal(limiter.clean(), 1);
});

test("a snapshot has the exceptions", () => {
  const [limiter, time] = limiterOf([api, bucket]);
  limiter.hit("a", 2);
  limiter.except("a", { api: { limit: 50 } }, { for: "1d" });
  limiter.except("b", { allow: true }, { for: "1d" });
  const free = limiter.reserve("b", 3).id;
  limiter.except("c", { deny: true }, { for: 1 });
  const snapshot = throughJson(limiter.snapshot());
  const again = RateLimiter.restore(snapshot, { clock: () => time.now });
  for (const key of ["a", "b", "c"]) assert.deepEqual(again.exceptions(key), limiter.exceptions(key));
  assert.deepEqual(throughJson(again.snapshot()), snapshot);
  assert.equal(again.get("a", "api"), 2);
  assert.equal(again.settle(free, 3), "settled");
  assert.equal(again.get("b", "api"), 0);
  // Under other policies, an exception is kept by the name of its policy.
  const renamed = RateLimiter.restore(snapshot, { clock: () => time.now, policies: bucket });
  assert.deepEqual(renamed.exceptions("a"), limiter.exceptions("a"));
  assert.equal(renamed.hit("a", 5).limit, 5);
  const back = RateLimiter.restore(throughJson(renamed.snapshot()), { clock: () => time.now, policies: api });
  assert.equal(back.hit("a", 48).allowed, true);
});

test("a snapshot with an exception that none wrote is rejected", () => {
  const [limiter] = limiterOf(api);
  limiter.except("a", { limit: 50 }, { for: "1d" });
  const snapshot = throughJson(limiter.snapshot());
  const [[key, [row]]] = snapshot.keys;
  const [name, algorithm, scale, until, count, since] = row;
  const head = [name, algorithm, scale, until];
  const broken = [
    [...head, 2, since, 2],
    [...head, 0],
    [...head, count, since, 2, 0],
    [...head, count, since, 10, 5],
    [...head, count, since, -1, 5],
    [name, algorithm, scale, -1, count, since, 2, 5],
    [...head, count, -1, 2, 5],
    [...head, 5, since, 2, 5, 2, 6],
    [...head, 5, since, 0, 1, 2, 6],
    [...row, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  ];
  const restored = (...rows) => RateLimiter.restore({ ...snapshot, keys: [[key, rows]] });
  for (const wrong of broken) assert.throws(() => restored(wrong), { code: "invalid_state" }, `${wrong}`);
  assert.throws(() => restored(row, row), { code: "invalid_state" });
  restored(row);
});

test("half of the keys may have exceptions, and none of these is evicted", () => {
  const [limiter] = limiterOf(api, { maxKeys: 10 });
  for (let key = 0; key < 5; key++) limiter.except(key, { deny: true }, { for: "1d" });
  assert.throws(() => limiter.except(5, { deny: true }, { for: "1d" }), {
    code: "full",
    message: "half of the 10 keys that this limiter holds have exceptions; raise its number of keys",
  });
  for (let key = 100; key < 1_100; key++) assert.equal(limiter.hit(key).allowed, true);
  assert.equal(limiter.size, 10);
  for (let key = 0; key < 5; key++) assert.equal(limiter.hit(key).reason, "denied");
  limiter.except(0, null);
  limiter.except(5, { deny: true }, { for: "1d" });
});

test("a limiter that grows keeps its exceptions, and an argument that is rejected changes nothing", () => {
  const [limiter] = limiterOf([api, ban]);
  limiter.except("a", { deny: true }, { for: "1d" });
  const before = limiter.exceptions("a");
  const wrong = [
    [undefined, { for: 1 }, "invalid_option", /^exception is required/],
    ["allow", { for: 1 }, "invalid_option", /^exception: "allow" is not an exception; use \{ allow: true \}/],
    [[], { for: 1 }, "invalid_option", /^exception: an array/],
    [new Map([["api", { limit: 1 }]]), { for: 1 }, "invalid_option", /^exception: an object/],
    [{}, { for: 1 }, "invalid_option", /^exception: an empty object/],
    [{ api: {} }, { for: 1 }, "invalid_option", /^exception: an empty object/],
    [{ api: { limit: undefined } }, { for: 1 }, "invalid_option", /^exception: an empty object/],
    [{ allow: false }, { for: 1 }, "invalid_option", /^allow: false is not true$/],
    [{ allow: 1 }, { for: 1 }, "invalid_option", /^allow: 1 is not true$/],
    [{ allow: true, deny: true }, { for: 1 }, "invalid_option", /with allow or deny and more/],
    [{ deny: true, api: { limit: 1 } }, { for: 1 }, "invalid_option", /with allow or deny and more/],
    [
      { api: { allow: true } },
      { for: 1 },
      "unknown_field",
      /^"allow" is not a field of an exception; use one of limit,/,
    ],
    [{ api: { scale: "1m" } }, { for: 1 }, "unknown_field", /^"scale" is not a field of an exception/],
    [{ api: { limit: 1, __proto__: null, toString: 1 } }, { for: 1 }, "unknown_field", /^"toString"/],
    [{ api: 5 }, { for: 1 }, "unknown_field", /^"api" is not a field of an exception/],
    [{ limit: 5 }, { for: 1 }, "unknown_policy", /^policy is required/],
    [{ none: { limit: 5 } }, { for: 1 }, "unknown_policy", /^policy: "none" is not a policy/],
    [{ "": { limit: 5 } }, { for: 1 }, "unknown_policy", /^policy: ""/],
    [JSON.parse('{"__proto__":{"limit":5}}'), { for: 1 }, "unknown_policy", /^policy: "__proto__"/],
    [{ api: { limit: 0 } }, { for: 1 }, "invalid_option", /^api.limit: 0 is not an integer from 1/],
    [{ api: { limit: 2 ** 53 } }, { for: 1 }, "invalid_option", /^api.limit: a number above/],
    [{ api: { limit: "5" } }, { for: 1 }, "invalid_option", /^api.limit: "5" is not an integer/],
    [{ api: { limit: 5n } }, { for: 1 }, "invalid_option", /^api.limit: 5n is not an integer/],
    [
      { ban: { after: 1_001 } },
      { for: 1 },
      "invalid_option",
      /^ban.after: 1001 is not an integer from 1 to 1000/,
    ],
    [{ ban: { for: "soon" } }, { for: 1 }, "invalid_option", /^ban.for: "soon" is not a duration/],
    [{ deny: true }, undefined, "invalid_option", /^until is required/],
    [{ deny: true }, {}, "invalid_option", /^until is required/],
    [{ deny: true }, { until: 0 }, "invalid_option", /^until: 0 is not a time within the next 400 days/],
    [{ deny: true }, { until: "tomorrow" }, "invalid_option", /^until: "tomorrow" is not a time/],
    [{ deny: true }, { until: new Date("never") }, "invalid_option", /^until: an object is not a time/],
    [{ deny: true }, { until: Number.MAX_SAFE_INTEGER }, "invalid_option", /^until: 9007199254740991/],
    [{ deny: true }, { for: "401d" }, "invalid_option", /^for: "401d" is not a duration of at most 400 days/],
    [{ deny: true }, { for: 0 }, "invalid_option", /^for: 0 is not a duration/],
    [{ deny: true }, { for: "1d", until: 5 }, "invalid_option", /^until: a second value is not accepted/],
    [{ deny: true }, { til: 5 }, "invalid_option", /^options: "til"/],
    [{ deny: true }, 5, "invalid_option", /^options: 5/],
  ];
  for (const [exception, end, code, message] of wrong)
    assert.throws(() => limiter.except("a", exception, end), { code, message }, String(message));
  assert.throws(() => limiter.except({}, { deny: true }, { for: 1 }), { code: "invalid_key" });
  assert.deepEqual(limiter.exceptions("a"), before);
  for (let key = 0; key < 3_000; key++) limiter.hit(key);
  assert.deepEqual(limiter.exceptions("a"), before);
});

test("each part of an argument is read once", () => {
  const [limiter] = limiterOf(api);
  let reads = 0;
  const numbers = {
    get limit() {
      return ++reads;
    },
  };
  const end = {
    get for() {
      return ++reads;
    },
  };
  limiter.except("a", { api: numbers }, end);
  assert.equal(reads, 2);
  assert.deepEqual(limiter.exceptions("a")?.policies, { api: { limit: 1 } });
});

test("a ledger keeps an exception in its state", () => {
  const ledger = new Ledger({ algorithm: "sliding_window", limit: 5, scale: "1h" });
  const now = 500_000 * hour;
  ledger.load(now, null);
  assert.throws(() => ledger.except(now, { limit: 1_001 }, { for: "1d" }), {
    code: "invalid_option",
    message: /^sliding_window.limit: 1001 is not accepted for a sliding_window that is stored outside/,
  });
  ledger.except(now, { limit: 1_000 }, { for: "1d" });
  assert.equal(ledger.hit(now, 900).allowed, true);
  const { state, expiresAt, changed } = ledger.save(now);
  assert.deepEqual([expiresAt, changed], [now + day, true]);
  const again = new Ledger({ algorithm: "sliding_window", limit: 5, scale: "1h" });
  again.load(now, throughJson(state));
  assert.deepEqual(again.exceptions(now), {
    until: now + day,
    policies: { sliding_window: { limit: 1_000 } },
  });
  assert.equal(again.hit(now, 100).allowed, true);
  again.load(now + day, throughJson(state));
  assert.deepEqual([again.exceptions(now + day), again.save(now + day).state], [null, null]);
  assert.throws(() => new Ledger(bucket).except(now, { capacity: 2 ** 53 - 1 }, { for: 1 }), {
    message: /^bucket.capacity: 9007199254740991 is not a capacity that the rate fills within/,
  });
});
