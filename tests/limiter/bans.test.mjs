// Bans in the npm package: what a decision, its headers and its body say, in memory, in snapshots and over several keys.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hitAll, Ledger, problemBody, RateLimiter, rateLimitHeaders, step, Throttle } from "tollgate";
import { Throttle as SmallThrottle } from "tollgate/throttle";

const hour = 3_600_000;
const burst = { name: "burst", algorithm: "fix_window_per_key", limit: 2, scale: "10m" };
const ban = { algorithm: "ban", after: 3, scale: "10m", for: "1h" };

/** A limiter under a clock of its own. */
function limiterOf(policies, options = {}) {
  const time = { now: 1_800_000_000_000 };
  return [new RateLimiter(policies, { clock: () => time.now, ...options }), time];
}

const times = (count, work) => Array.from({ length: count }, work);

test("a ban begins with the last denial and ends after its length", () => {
  const [limiter, time] = limiterOf([burst, ban]);
  const reasons = times(6, () => limiter.hit("a").reason);
  assert.deepEqual(reasons, [undefined, undefined, undefined, undefined, "banned", "banned"]);
  const { resetAfter, ...decision } = limiter.hit("a");
  assert.deepEqual(decision, {
    allowed: false,
    count: 2,
    limit: 2,
    remaining: 0,
    retryAfter: hour,
    moreAfter: hour,
    policy: "ban",
    violated: ["ban"],
    reason: "banned",
  });
  assert.equal(resetAfter, hour);
  assert.equal(limiter.hit("b").allowed, true);
  time.now += hour - 1;
  assert.equal(limiter.hit("a").retryAfter, 1);
  time.now += 1;
  assert.equal(limiter.hit("a").allowed, true);
});

test("peek, cost 0 and a full limiter are no denials, and a denied reservation is one", () => {
  const [limiter] = limiterOf([burst, ban], { maxKeys: 1, onFull: "deny" });
  times(2, () => limiter.hit("a"));
  times(9, () => limiter.peek("a"));
  times(9, () => limiter.hit("a", 0));
  assert.equal(limiter.get("a", "ban"), 0);
  assert.equal(limiter.reserve("a").allowed, false);
  assert.equal(limiter.get("a", "ban"), 1);
  assert.equal(limiter.hit("a", 1_000).retryAfter, Number.POSITIVE_INFINITY);
  assert.equal(limiter.get("a", "ban"), 2);
  assert.equal(limiter.peek("a").reason, "banned");
  assert.equal(times(9, () => limiter.hit("b").reason).at(-1), "full");
  assert.equal(limiter.get("b", "ban"), 0);
});

test("a denial that open reservations alone cause has a reason, and is no denial that counts", () => {
  const [limiter] = limiterOf([burst, ban]);
  const held = times(2, () => limiter.reserve("a", 1, { ttl: "5m" }));
  const { decision } = limiter.reserve("a");
  assert.equal(decision.reason, "reserved");
  // When nothing is settled, both are charged after five minutes, to a window of ten.
  assert.equal(decision.retryAfter, 15 * 60_000);
  assert.deepEqual(decision, limiter.peek("a"));
  const headers = rateLimitHeaders(decision, limiter.policies, { legacy: true });
  assert.equal(headers["Retry-After"], "1");
  assert.equal(headers.RateLimit, '"burst";r=0;t=1');
  assert.match(problemBody(decision, limiter.policies), /#quota-exceeded/);
  assert.equal(limiter.get("a", "ban"), 0);
  for (const { id } of held) limiter.settle(id);
  assert.equal(limiter.hit("a").reason, undefined);
  assert.equal(limiter.get("a", "ban"), 1);
});

test("costs by policy without any name are an error, and settle what was reserved", () => {
  const [limiter] = limiterOf([burst, { ...burst, name: "second", limit: 9 }]);
  for (const method of ["hit", "peek", "reserve"])
    assert.throws(() => limiter[method]("a", {}), { code: "invalid_cost" });
  const { id } = limiter.reserve("a", { second: 3 });
  assert.equal(limiter.settle(id, {}), "settled");
  assert.deepEqual([limiter.get("a", "burst"), limiter.get("a", "second")], [1, 3]);
});

test("reservations are settled during a ban", () => {
  const [limiter] = limiterOf([burst, ban]);
  const reservation = limiter.reserve("a");
  limiter.ban("a", "1h");
  assert.equal(reservation.extend("2m"), "extended");
  assert.equal(reservation.settle(2), "settled");
  assert.equal(limiter.get("a", "burst"), 2);
  assert.equal(limiter.get("a", "ban"), 0);
  assert.equal(limiter.reserve("a").decision.reason, "banned");
});

test("by hand: sooner, later, lifted, and by name among several", () => {
  const [limiter, time] = limiterOf([burst, { ...ban, factor: 2, most: "1d" }]);
  assert.equal(limiter.ban("a", "2h"), time.now + 2 * hour);
  assert.equal(limiter.ban("a", "1m"), time.now + 60_000);
  assert.equal(limiter.hit("a").retryAfter, 60_000);
  assert.equal(limiter.unban("a"), true);
  assert.equal(limiter.unban("a"), false);
  times(4, () => limiter.hit("a"));
  // A ban by hand before did not make this one longer.
  assert.equal(limiter.hit("a").moreAfter, hour);
  assert.equal(limiter.expiresAt("a", "ban"), time.now + 2 * hour);
  assert.equal(limiter.reset("a"), true);
  assert.equal(limiter.hit("a").allowed, true);

  const [two] = limiterOf([burst, { ...ban, name: "x" }, { ...ban, name: "y" }]);
  const required = "policy is required where there are several (one of x, y)";
  assert.throws(() => two.ban("a", "1h"), { code: "unknown_policy", message: required });
  const other = 'policy: "burst" is not a ban of this limiter; use one of x, y';
  assert.throws(() => two.unban("a", "burst"), { code: "unknown_policy", message: other });
  two.ban("a", "1h", "y");
  assert.deepEqual(two.hit("a").violated, ["y"]);
  const [none] = limiterOf(burst);
  assert.throws(() => none.ban("a", "1h"), {
    code: "unknown_policy",
    message: /^policy: this limiter has no ban; add/,
  });
  for (const length of [0, "soon", undefined, Number.NaN, 1.5])
    assert.throws(() => two.ban("a", length, "x"), { code: "invalid_option", message: /^for/ });
  for (const kind of ["inc", "set"])
    assert.throws(() => two[kind]("a", 1, "x"), {
      code: "ban_only",
      message: `"x" is a ban, which ${kind} cannot change; use ban or unban; see docs/bans.md`,
    });
});

test("a cost that names a ban is an error, and changes nothing", () => {
  const [limiter, time] = limiterOf([burst, ban]);
  const { id } = limiter.reserve("a");
  const ledger = new Ledger([burst, ban]);
  const cost = { ban: 2 };
  for (const work of [
    () => limiter.hit("a", cost),
    () => limiter.peek("a", cost),
    () => limiter.reserve("a", cost),
    () => limiter.settle(id, { burst: 1, ...cost }),
    () => hitAll([{ limiter, key: "a", cost }]),
    () => ledger.hit(time.now, cost),
  ])
    assert.throws(work, {
      code: "ban_only",
      message: '"ban" is a ban, which a cost cannot change; use ban or unban; see docs/bans.md',
    });
  assert.equal(limiter.get("a", "burst"), 1);
  assert.equal(limiter.settle(id, { burst: 0 }), "settled");
  assert.equal(limiter.get("a", "burst"), 0);
});

test("headers and the problem of a ban", () => {
  const [limiter] = limiterOf([burst, { algorithm: "token_bucket", capacity: 9, refillRate: 1 }, ban]);
  const allowed = rateLimitHeaders(limiter.hit("a"), limiter.policies);
  assert.equal(allowed["RateLimit-Policy"], '"burst";q=2;w=600, "token_bucket";q=9;w=9');
  assert.equal(allowed.RateLimit, '"burst";r=1;t=600');
  limiter.ban("a", "1h");
  const decision = limiter.hit("a");
  assert.deepEqual(rateLimitHeaders(decision, limiter.policies), {
    "RateLimit-Policy": '"burst";q=2;w=600, "token_bucket";q=9;w=9',
    RateLimit: '"burst";r=0;t=3600, "token_bucket";r=0;t=3600',
    "Retry-After": "3600",
  });
  assert.deepEqual(JSON.parse(problemBody(decision, limiter.policies)), {
    type: "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
    title: "Request not satisfied due to detection of abnormal request pattern",
    status: 429,
    "violated-policies": ["ban"],
  });
  const [alone] = limiterOf(ban);
  assert.deepEqual(rateLimitHeaders(alone.hit("a"), alone.policies, { legacy: true }), {});
  alone.ban("a", "1h");
  assert.deepEqual(rateLimitHeaders(alone.hit("a"), alone.policies, { legacy: true }), {
    "Retry-After": "3600",
  });
});

test("in snapshots and stored states", () => {
  const [limiter, time] = limiterOf([burst, ban]);
  times(4, () => limiter.hit("a"));
  limiter.ban("b", "1h");
  const clock = () => time.now;
  const again = RateLimiter.restore(JSON.parse(JSON.stringify(limiter.snapshot())), { clock });
  assert.equal(again.get("a", "ban"), 2);
  assert.equal(again.hit("a").reason, "banned");
  assert.equal(again.hit("b").reason, "banned");

  const policies = [burst, ban];
  let state = step(policies, null, "ban", hour, time.now).state;
  state = JSON.parse(JSON.stringify(state));
  assert.equal(step(policies, state, "hit", 1, time.now).decision.reason, "banned");
  assert.equal(step(policies, state, "hit", 1, time.now).changed, false);
  assert.equal(step(policies, state, "unban", 0, time.now).value, time.now + hour);
  assert.throws(() => step(policies, null, "ban", 0, time.now), { code: "invalid_option" });
  const ledger = new Ledger(policies);
  ledger.load(time.now, state);
  assert.equal(ledger.unban(time.now), true);
  assert.equal(ledger.save(time.now).state, null);
});

test("each of several keys counts its own denials", () => {
  const [users] = limiterOf([{ ...burst, limit: 1 }, ban]);
  const [teams] = limiterOf([{ ...burst, limit: 99 }, ban]);
  const hit = () =>
    hitAll([
      { limiter: users, key: "u" },
      { limiter: teams, key: "t" },
    ]);
  assert.equal(hit().allowed, true);
  const decisions = times(3, () => hit().decisions[0].reason);
  assert.deepEqual(decisions, [undefined, undefined, "banned"]);
  assert.equal(teams.get("t", "ban"), 0);
  assert.equal(teams.get("t", "burst"), 1);
});

test("a throttle takes no ban", () => {
  for (const Any of [Throttle, SmallThrottle])
    assert.throws(() => new Any([burst, ban]), {
      code: "invalid_policy",
      message: 'algorithm: "ban" is not accepted by a Throttle, whose calls wait',
    });
});
