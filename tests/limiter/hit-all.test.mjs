// hitAll decides over several keys at once: all are charged or none, and hits on one key are one decision.

import assert from "node:assert/strict";
import test from "node:test";
import { hitAll as hitAllElsewhere, RemoteLimiter } from "../../dist/client.js";
import { hitAll, RateLimiter } from "../../dist/index.js";

const clock = () => 1_000_000;
const window = (limit, more) =>
  new RateLimiter({ algorithm: "fix_window", limit, scale: "1h", ...more }, { clock });

test("several keys are hit all at once, or none of them is", () => {
  const [users, teams] = [window(2), window(5)];
  const hit = (cost) =>
    hitAll([
      { limiter: users, key: "user:42" },
      { limiter: teams, key: "team:7", cost },
    ]);
  const first = hit(3);
  assert.equal(first.allowed, true);
  assert.deepEqual(
    first.decisions.map(({ allowed, remaining }) => [allowed, remaining]),
    [
      [true, 1],
      [true, 2],
    ],
  );
  const second = hit(3);
  assert.equal(second.allowed, false);
  assert.deepEqual(
    second.decisions.map(({ allowed }) => allowed),
    [true, false],
  );
  assert.deepEqual([users.get("user:42"), teams.get("team:7")], [1, 3]);
  // Nothing is left open.
  users.reset("user:42");
  assert.equal(users.get("user:42"), 0);
});

test("one key twice has to fit twice, and costs may be by policy", () => {
  const limiter = new RateLimiter(
    [
      { name: "rpm", algorithm: "sliding_window", limit: 3, scale: "1m" },
      { name: "tpm", algorithm: "token_bucket", capacity: 100, refillRate: 1 },
    ],
    { clock },
  );
  const twice = (tpm) => [
    { limiter, key: "a", cost: { tpm } },
    { limiter, key: "a", cost: { tpm } },
  ];
  assert.equal(hitAll(twice(51)).allowed, false);
  assert.deepEqual([limiter.get("a", "rpm"), limiter.get("a", "tpm")], [0, 100]);
  assert.equal(hitAll(twice(50)).allowed, true);
  assert.deepEqual([limiter.get("a", "rpm"), limiter.get("a", "tpm")], [2, 0]);
  assert.deepEqual(hitAll([]), { allowed: true, decisions: [] });
});

test("hits of one limiter on one key are one decision of the sum, at each place", () => {
  let now = 1_000_000;
  const clock = () => now;
  const bucket = new RateLimiter({ algorithm: "token_bucket", capacity: 10, refillRate: 1 }, { clock });
  const other = new RateLimiter({ algorithm: "token_bucket", capacity: 10, refillRate: 1 }, { clock });
  const hits = (...costs) => [
    { limiter: bucket, key: "a", cost: costs[0] },
    { limiter: other, key: "a" },
    { limiter: bucket, key: "a", cost: costs[1] },
  ];
  const never = hitAll(hits(6, 6));
  assert.deepEqual(never.decisions[0], bucket.peek("a", 12));
  assert.equal(never.decisions[0].retryAfter, Number.POSITIVE_INFINITY);
  assert.equal(never.decisions[2], never.decisions[0]);
  assert.deepEqual([never.allowed, bucket.get("a"), other.get("a")], [false, 10, 10]);
  const { allowed, decisions } = hitAll(hits(3, 4));
  assert.deepEqual([allowed, bucket.get("a"), other.get("a")], [true, 3, 9]);
  const { remaining, resetAfter, moreAfter } = decisions[0];
  assert.deepEqual([remaining, resetAfter, moreAfter], [3, 7_000, 1_000]);
  assert.equal(decisions[2], decisions[0]);
  // Its wait is exact.
  const denied = hitAll(hits(2, 5)).decisions[0];
  assert.deepEqual([denied.allowed, denied.retryAfter], [false, 4_000]);
  now += 3_999;
  assert.equal(hitAll(hits(2, 5)).allowed, false);
  now += 1;
  assert.equal(hitAll(hits(2, 5)).allowed, true);
  // Keys of other types are other keys.
  assert.equal(hitAll([1, "1"].map((key) => ({ limiter: bucket, key, cost: 6 }))).allowed, true);
});

test("costs of one key are summed by policy, and each is checked", () => {
  const policies = ["a", "b", "c"].map((name) => ({ name, algorithm: "fix_window", limit: 9, scale: "1h" }));
  const limiter = new RateLimiter(policies, { clock });
  const of = (...costs) => hitAll(costs.map((cost) => ({ limiter, key: "k", cost })));
  assert.equal(of({ a: 2 }, undefined, 3, { b: 0, c: undefined }).allowed, true);
  assert.deepEqual(
    ["a", "b", "c"].map((name) => limiter.get("k", name)),
    [7, 5, 6],
  );
  for (const wrong of [-1, 0.5, Number.NaN, "1", null, [], new Map(), { a: -1 }, { a: null }, 2 ** 53]) {
    assert.throws(() => of(2, wrong), { code: "invalid_cost" }, `${wrong}`);
    assert.throws(() => of(wrong, { a: 1 }), { code: "invalid_cost" }, `${wrong}`);
  }
  assert.throws(() => of(2, Number.MAX_SAFE_INTEGER), { code: "invalid_cost" });
  assert.throws(() => of(2, { d: 1 }), { code: "unknown_policy" });
  assert.deepEqual([limiter.get("k", "a"), limiter.get("k", "b")], [7, 5]);
});

test("hits on one key have the same policies of the call, or it is an error", () => {
  const limiter = window(1);
  const other = (limit) => ({ algorithm: "fix_window", limit, scale: "1h" });
  const of = (...policies) => hitAll(policies.map((policies) => ({ limiter, key: "a", policies })));
  assert.equal(of(other(2), other(2)).allowed, true);
  assert.equal(limiter.get("a"), 2);
  for (const [one, two] of [
    [other(9), undefined],
    [undefined, other(9)],
    [other(8), other(9)],
  ])
    assert.throws(() => of(one, two), { code: "policy_mismatch" });
  assert.throws(() => of(other(9), { ...other(9), limit: 0 }), { code: "invalid_policy" });
  assert.throws(() => of(other(9), { ...other(9), scale: "2h" }), { code: "policy_mismatch" });
  assert.equal(of({ ...other(4), scale: 3_600_000 }, [other(4)]).allowed, true);
  assert.equal(limiter.get("a"), 4);
});

test("after a denial the keys that follow are only looked at", () => {
  const [first, second] = [window(1, { denied: "count" }), window(1, { denied: "count" })];
  first.hit("a");
  second.hit("a");
  const hits = [
    { limiter: first, key: "a" },
    { limiter: second, key: "a" },
  ];
  assert.deepEqual(
    hitAll(hits).decisions.map(({ allowed }) => allowed),
    [false, false],
  );
  assert.deepEqual([first.get("a"), second.get("a")], [1, 1]);
});

test("an error takes nothing from any key", () => {
  const [first, second] = [window(5), window(5)];
  const hits = [
    { limiter: first, key: "a" },
    { limiter: second, key: "a", cost: -1 },
  ];
  assert.throws(() => hitAll(hits), { code: "invalid_cost" });
  assert.equal(first.get("a"), 0);
  const running = new RateLimiter({ name: "running", algorithm: "concurrency", limit: 1 }, { clock });
  assert.throws(() => hitAll([hits[0], { limiter: running, key: "a" }]), {
    code: "reserve_only",
    message:
      '"running" is a concurrency limit, which hitAll cannot change; use reserve; see docs/concurrency.md',
  });
  assert.equal(first.get("a"), 0);
});

test("where denied hits count, a wait is that of a hit that was not counted", () => {
  let now = 0;
  const policy = { algorithm: "sliding_window", limit: 1, scale: "1m", denied: "count" };
  const limiter = new RateLimiter(policy, { clock: () => now });
  const hit = () => hitAll([{ limiter, key: "a" }]);
  hit();
  now = 20_000;
  assert.equal(limiter.peek("a").retryAfter, 60_000);
  assert.deepEqual([hit().decisions[0].retryAfter, hit().decisions[0].count], [40_000, 1]);
  now = 59_999;
  assert.equal(hit().allowed, false);
  now = 60_000;
  assert.equal(hit().allowed, true);
});

test("exactly as many are admitted as the strictest key allows", () => {
  const limiters = [window(7), window(4), window(9)];
  let allowed = 0;
  for (let turn = 0; turn < 50; turn += 1) {
    const order = limiters.map((_, at) => limiters[(at + turn) % limiters.length]);
    if (hitAll(order.map((limiter) => ({ limiter, key: "a" }))).allowed) allowed += 1;
  }
  assert.equal(allowed, 4);
  assert.deepEqual(
    limiters.map((limiter) => limiter.get("a")),
    [4, 4, 4],
  );
});

test("an allowed key has the decision of a hit, which holds no reservation", () => {
  for (const policy of [
    { algorithm: "fix_window", limit: 3, scale: "1h" },
    { algorithm: "sliding_window", limit: 3, scale: "1h" },
    { algorithm: "sliding_counter", limit: 3, scale: "1h" },
    { algorithm: "token_bucket", capacity: 3, refillRate: 1 },
  ]) {
    const [one, other] = [new RateLimiter(policy, { clock }), new RateLimiter(policy, { clock })];
    for (let count = 0; count < 3; count += 1)
      assert.deepEqual(hitAll([{ limiter: one, key: "a" }]).decisions, [other.hit("a")]);
  }
});

test("a limiter of another hitAll is an error, and nothing is charged", async () => {
  const limiter = window(5);
  const remote = new RemoteLimiter({
    url: "https://limits.example.com/_tollgate",
    token: "token",
    policy: "api",
    fetch: () => assert.fail("a request was sent"),
  });
  const own = { limiter, key: "a" };
  for (const wrong of [remote, {}, null]) {
    assert.throws(() => hitAll([own, { limiter: wrong, key: "a" }]), {
      code: "invalid_option",
      message: /^limiter: .+ is not a RateLimiter; see docs\/several-keys\.md$/,
    });
  }
  assert.throws(() => hitAll([own, { key: "a" }]), { message: /^limiter is required \(a RateLimiter;/ });
  await assert.rejects(hitAllElsewhere([{ limiter: remote, key: "a" }, own]), {
    code: "invalid_option",
    message: /^limiter: an object is not a RedisLimiter, StoreLimiter or RemoteLimiter; /,
  });
  assert.equal(limiter.get("a"), 0);
});
