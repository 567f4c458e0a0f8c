// Headers of allowed hits are filled into what Rust wrote once; those with the older headers Rust writes each time.

import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { RateLimiter, rateLimitHeaders } from "tollgate";

const name = fc.oneof(
  fc.constantFrom("burst", "555666777888", "111222333444;r=111222333444", 'a"b\\c'),
  fc.string({ unit: fc.constantFrom(...'ab"\\;=,0123456789 '), minLength: 1, maxLength: 20 }),
);
const scale = fc.integer({ min: 1, max: 10_000_000 });
const policies = fc.uniqueArray(
  fc.record(
    { name, unit: name, algorithm: fc.constant("fix_window"), limit: fc.integer({ min: 1 }), scale },
    { requiredKeys: ["name", "algorithm", "limit", "scale"] },
  ),
  { minLength: 1, maxLength: 3, selector: ({ name }) => name },
);
const amount = fc.oneof(
  fc.integer({ min: 0, max: 2_000 }),
  fc.maxSafeNat(),
  fc.constantFrom(111_222_333_444, 555_666_777_888, 999_999_999_999_999, 1_000_000_000_000_000),
);
const wait = fc.oneof(amount, fc.integer({ min: 0, max: 3_000 }), fc.constant(0));

test("a filled header is what Rust writes", () => {
  fc.assert(
    fc.property(
      policies,
      fc.nat(),
      amount,
      wait,
      fc.boolean(),
      (list, at, remaining, moreAfter, isFrozen) => {
        const { policies } = new RateLimiter(list.map((policy) => ({ ...policy, denied: undefined })));
        const { name: policy, limit } = list[at % list.length];
        const decision = {
          allowed: true,
          count: 0,
          limit,
          remaining,
          retryAfter: 0,
          resetAfter: 0,
          moreAfter,
          policy,
          violated: [],
        };
        const { "RateLimit-Policy": quotas, RateLimit: rest } = rateLimitHeaders(decision, policies, {
          legacy: true,
        });
        const written = rateLimitHeaders(decision, isFrozen ? policies : list);
        assert.deepEqual(written, { "RateLimit-Policy": quotas, RateLimit: rest });
      },
    ),
    { numRuns: 3_000, seed: Number(process.env.FAST_CHECK_SEED ?? 1) },
  );
});

const headersOf = (limiter, decision, options) => rateLimitHeaders(decision, limiter.policies, options);

test("t is when more may be used: of a bucket when its next token comes, not when it is full", () => {
  let now = 0;
  const policy = { name: "api", algorithm: "token_bucket", capacity: 60, refillRate: 1 };
  const limiter = new RateLimiter(policy, { clock: () => now });
  assert.equal(headersOf(limiter, limiter.peek("a", 0)).RateLimit, '"api";r=60');
  assert.equal(headersOf(limiter, limiter.hit("a", 59)).RateLimit, '"api";r=1;t=1');
  limiter.hit("a");
  now = 999;
  assert.deepEqual(headersOf(limiter, limiter.hit("a"), { legacy: true }), {
    "RateLimit-Policy": '"api";q=60;w=60',
    RateLimit: '"api";r=0;t=1',
    "Retry-After": "1",
    "X-RateLimit-Limit": "60",
    "X-RateLimit-Remaining": "0",
    "X-RateLimit-Reset": "1",
  });
  // More is to be had before so much is.
  assert.deepEqual(headersOf(limiter, limiter.hit("a", 10)).RateLimit, '"api";r=0;t=1');
  assert.deepEqual(headersOf(limiter, limiter.hit("a", 10))["Retry-After"], "10");
  now = 60_000;
  const unused = headersOf(limiter, limiter.peek("a", 0), { legacy: true });
  assert.deepEqual([unused.RateLimit, unused["X-RateLimit-Reset"]], ['"api";r=60', "0"]);
});

test("t is never later than Retry-After", () => {
  const limiter = new RateLimiter({ name: "api", algorithm: "fix_window", limit: 1, scale: "1m" });
  limiter.hit("a");
  const denied = { ...limiter.hit("a"), retryAfter: 2_500, moreAfter: 9_000 };
  const { RateLimit: rest, "Retry-After": wait } = headersOf(limiter, denied);
  assert.deepEqual([rest, wait], ['"api";r=0;t=3', "3"]);
  // A cost that never fits has no Retry-After.
  assert.equal(
    headersOf(limiter, { ...denied, retryAfter: Number.POSITIVE_INFINITY }).RateLimit,
    '"api";r=0;t=9',
  );
});

test("qu is a policy's unit, unless that is requests", () => {
  const quota = (policy) => {
    const limiter = new RateLimiter(policy);
    return headersOf(limiter, limiter.peek("a"))["RateLimit-Policy"];
  };
  const window = { name: "a", algorithm: "fix_window", limit: 5, scale: "1m" };
  assert.equal(quota({ ...window, unit: "content-bytes" }), '"a";q=5;qu="content-bytes";w=60');
  assert.equal(quota({ ...window, unit: 'half "a\\' }), '"a";q=5;qu="half \\"a\\\\";w=60');
  assert.equal(quota({ ...window, unit: "requests" }), '"a";q=5;w=60');
  const running = { name: "a", algorithm: "concurrency", limit: 5 };
  // Work in progress has no window.
  assert.equal(quota(running), '"a";q=5;qu="concurrent-requests"');
  assert.equal(quota({ ...running, unit: "exports" }), '"a";q=5;qu="exports"');
  assert.equal(
    quota([window, { ...window, name: "b", unit: "tokens" }]),
    '"a";q=5;w=60, "b";q=5;qu="tokens";w=60',
  );
});

test("RateLimit-Policy has the limit of the exception in force, allowed or denied, with legacy headers or without", () => {
  for (const [policy, field, window] of [
    [{ name: "a", algorithm: "fix_window", limit: 2, scale: "1m" }, "limit", ";w=60"],
    // The window of a bucket depends on its rate, which a decision does not have.
    [{ name: "a", algorithm: "token_bucket", capacity: 2, refillRate: 1 }, "capacity", ""],
  ]) {
    const limiter = new RateLimiter(policy, { clock: () => 0 });
    const quota = (key, options) =>
      rateLimitHeaders(limiter.hit(key), limiter.policies, options)["RateLimit-Policy"];
    limiter.except("vip", { [field]: 3 }, { for: "1h" });
    const usual = quota("b");
    assert.equal(usual, `"a";q=2;w=${field === "limit" ? 60 : 2}`);
    for (const options of [{}, { legacy: true }, {}, {}])
      assert.equal(quota("vip", options), `"a";q=3${window}`);
    assert.equal(limiter.hit("vip").allowed, false);
    assert.equal(quota("b"), usual);
    limiter.except("all", { allow: true }, { for: "1h" });
    const all = rateLimitHeaders(limiter.hit("all"), limiter.policies);
    // No more remains than there is.
    assert.match(all["RateLimit-Policy"], /^"a";q=999999999999999/);
    assert.equal(all.RateLimit, '"a";r=999999999999999');
  }
});

test("headers of changed policies are those of the changed ones", () => {
  const policy = { algorithm: "fix_window", limit: 5, scale: "1m" };
  const quota = (policies) =>
    rateLimitHeaders(new RateLimiter(policies).hit("a"), policies)["RateLimit-Policy"];
  assert.equal(quota(policy), '"fix_window";q=5;w=60');
  policy.limit = 7;
  assert.equal(quota(policy), '"fix_window";q=7;w=60');
  const list = [policy];
  assert.equal(quota(list), '"fix_window";q=7;w=60');
  list[0] = { ...policy, limit: 9, scale: "2m" };
  assert.equal(quota(list), '"fix_window";q=9;w=120');
});
