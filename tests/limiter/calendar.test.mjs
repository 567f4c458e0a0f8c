// Windows of the calendar through the package: JavaScript's own Date says where they end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter, rateLimitHeaders, step, TollgateError } from "tollgate";

const day = 86_400_000;
const seconds = (time) => Math.ceil(time / 1_000);

/** Returns when the window around a time ends, at an offset from UTC in minutes. */
function endOf(scale, minutes, now) {
  const local = new Date(now + minutes * 60_000);
  const [year, month, date] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()];
  const sinceMonday = (local.getUTCDay() + 6) % 7;
  const end = {
    day: () => Date.UTC(year, month, date + 1),
    week: () => Date.UTC(year, month, date - sinceMonday + 7),
    month: () => Date.UTC(year, month + 1, 1),
  }[scale]();
  return end - minutes * 60_000;
}

const offsets = { "+00:00": 0, Z: 0, "+02:00": 120, "-05:30": -330, "+14:00": 840, "-14:00": -840 };
const moments = [
  Date.UTC(1970, 0, 1),
  Date.UTC(2026, 10, 17, 6, 29, 51, 7),
  Date.UTC(2028, 1, 28, 23, 59, 59, 999),
  Date.UTC(2028, 1, 29, 12),
  Date.UTC(2100, 1, 28, 23),
  Date.UTC(2399, 11, 31, 23, 59, 59, 999),
];

for (const scale of ["day", "week", "month"]) {
  test(`a ${scale} is over at its end, at every offset, and not a millisecond earlier`, () => {
    for (const [utcOffset, minutes] of Object.entries(offsets)) {
      for (const start of moments) {
        let now = start;
        const policy = { algorithm: "fix_window", limit: 2, scale, utcOffset, denied: "free" };
        const limiter = new RateLimiter(policy, { clock: () => now });
        const end = endOf(scale, minutes, start);
        assert.equal(limiter.hit("key", 2).resetAfter, end - start);
        assert.equal(limiter.expiresAt("key"), end);
        assert.equal(limiter.hit("key").retryAfter, end - start);
        now = end - 1;
        assert.equal(limiter.hit("key").retryAfter, 1);
        now = end;
        assert.equal(limiter.hit("key", 2).resetAfter, endOf(scale, minutes, end) - end);
      }
    }
  });
}

test("a clock that steps back counts in the stored month, and one that steps back far takes it along", () => {
  let now = Date.UTC(2026, 2, 1);
  const limiter = new RateLimiter(
    { algorithm: "fix_window", limit: 1, scale: "month" },
    { clock: () => now },
  );
  assert.equal(limiter.hit("key").allowed, true);
  now -= 1;
  assert.equal(limiter.peek("key").retryAfter, 31 * day + 1);
  now = Date.UTC(2025, 11, 31, 12);
  assert.equal(limiter.peek("key").retryAfter, day / 2);
  assert.equal(limiter.hit("key").allowed, false);
  now = Date.UTC(2026, 0, 1);
  assert.equal(limiter.hit("key").allowed, true);
});

test("headers have the length of a day and of a week, and of a month only the time until its end", () => {
  const now = Date.UTC(2028, 1, 28, 12);
  const headersOf = (scale) => {
    const policy = { algorithm: "fix_window", limit: 5, scale, utcOffset: "-02:00", name: scale };
    const limiter = new RateLimiter(policy, { clock: () => now });
    return rateLimitHeaders(limiter.hit("key"), limiter.policies);
  };
  const left = (scale) => seconds(endOf(scale, -120, now) - now);
  assert.deepEqual(headersOf("day"), {
    "RateLimit-Policy": '"day";q=5;w=86400',
    RateLimit: `"day";r=4;t=${left("day")}`,
  });
  assert.equal(headersOf("week")["RateLimit-Policy"], '"week";q=5;w=604800');
  assert.deepEqual(headersOf("month"), {
    "RateLimit-Policy": '"month";q=5',
    RateLimit: `"month";r=4;t=${left("month")}`,
  });
});

test("a snapshot and a stored state hold a month, and go on in it", () => {
  const now = Date.UTC(2026, 4, 31, 23, 30);
  const policy = { algorithm: "fix_window", limit: 3, scale: "month", utcOffset: "+02:00" };
  const limiter = new RateLimiter(policy, { clock: () => now });
  limiter.hit("key", 2);
  const snapshot = JSON.parse(JSON.stringify(limiter.snapshot()));
  assert.deepEqual(snapshot.policies, [policy]);
  assert.deepEqual(snapshot.keys, [
    ["key", [[0, 0, -30_120, Date.UTC(2026, 5, 30, 22), 2, Date.UTC(2026, 4, 31, 22), 2]]],
  ]);
  const again = RateLimiter.restore(snapshot, { clock: () => now });
  assert.equal(again.hit("key").remaining, 0);
  assert.equal(again.snapshot().keys[0][1].length, 1);

  const first = step(policy, null, "hit", 2, now);
  const state = JSON.parse(JSON.stringify(first.state));
  assert.deepEqual(state.rows, [
    ["fix_window", [0, -30_120, Date.UTC(2026, 5, 30, 22), 2, Date.UTC(2026, 4, 31, 22), 2]],
  ]);
  assert.equal(first.expiresAt, endOf("month", 120, now));
  const second = step({ ...policy, utcOffset: undefined, utc_offset: "+02:00" }, state, "hit", 2, now);
  assert.deepEqual([second.decision.allowed, second.decision.count], [false, 2]);
  assert.deepEqual(step(policy, state, "peek", 1, now).state, state);
});

test("a policy that goes from a day to a month to an hour and back has a quota of each", () => {
  const scales = [{ scale: "day" }, { scale: "month" }, { scale: "1h" }];
  const policyOf = (scale) => ({ algorithm: "fix_window", limit: 5, denied: "free", ...scale });
  const start = Date.UTC(2028, 1, 27, 21);
  const byDay = new Map();
  const byMonth = new Map();
  let state = null;
  for (let hour = 0; hour < 24 * 9; hour++) {
    const now = start + hour * 3_600_000;
    const scale = scales[hour % 7 < 3 ? hour % 3 : hour % 2];
    const { decision, state: next } = step(policyOf(scale), state, "hit", 1, now);
    state = JSON.parse(JSON.stringify(next));
    if (!decision.allowed) continue;
    for (const [counts, unit] of [
      [byDay, "day"],
      [byMonth, "month"],
    ]) {
      if (scale.scale !== unit) continue;
      const window = endOf(unit, 0, now);
      counts.set(window, (counts.get(window) ?? 0) + 1);
      assert.ok(counts.get(window) <= 5, `${unit} at hour ${hour}`);
    }
  }
  // It denied no more than it had to, either: both months were used up.
  assert.deepEqual([...byMonth.values()], [5, 5]);
});

test("the numbers of a call must have the limiter's scale and offset", () => {
  const policy = { algorithm: "fix_window", limit: 5, scale: "month", utcOffset: "+02:00" };
  const limiter = new RateLimiter(policy, { clock: () => 0 });
  assert.equal(limiter.hit("key", 1, { ...policy, limit: 9 }).limit, 9);
  for (const other of [{ utcOffset: "Z" }, { scale: "day" }, { scale: "1w", utcOffset: undefined }])
    assert.throws(
      () => limiter.hit("key", 1, { ...policy, ...other }),
      (error) => error instanceof TollgateError && error.code === "policy_mismatch",
    );
});

test("a week as a duration is seven days of the clock", () => {
  const limiter = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1w" }, { clock: () => 1 });
  assert.equal(limiter.hit("key").resetAfter, 7 * day - 1);
});
