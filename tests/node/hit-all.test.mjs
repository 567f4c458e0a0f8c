// `hitAll` charges all keys or none, and admits what the strictest key allows.

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
    message: /^limiter: an object is not a RedisLimiter or RemoteLimiter; /,
  });
  assert.equal(limiter.get("a"), 0);
});
