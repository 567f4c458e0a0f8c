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
  fc.record({ name, algorithm: fc.constant("fix_window"), limit: fc.integer({ min: 1 }), scale }),
  { minLength: 1, maxLength: 3, selector: ({ name }) => name },
);
const amount = fc.oneof(
  fc.integer({ min: 0, max: 2_000 }),
  fc.maxSafeNat(),
  fc.constantFrom(111_222_333_444, 555_666_777_888, 999_999_999_999_999, 1_000_000_000_000_000),
);
const wait = fc.oneof(amount, fc.integer({ min: 0, max: 3_000 }));

test("a filled header is what Rust writes", () => {
  fc.assert(
    fc.property(
      policies,
      fc.nat(),
      amount,
      wait,
      fc.boolean(),
      (list, at, remaining, resetAfter, isFrozen) => {
        const { policies } = new RateLimiter(list.map((policy) => ({ ...policy, denied: undefined })));
        const { name: policy, limit } = list[at % list.length];
        const decision = {
          allowed: true,
          count: 0,
          limit,
          remaining,
          retryAfter: 0,
          resetAfter,
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

test("headers of changed policies are those of the changed ones", () => {
  const policy = { algorithm: "fix_window", limit: 5, scale: "1m" };
  const decision = new RateLimiter(policy).hit("a");
  assert.equal(rateLimitHeaders(decision, policy)["RateLimit-Policy"], '"fix_window";q=5;w=60');
  policy.limit = 7;
  assert.equal(rateLimitHeaders(decision, policy)["RateLimit-Policy"], '"fix_window";q=7;w=60');
  const list = [policy];
  assert.equal(rateLimitHeaders(decision, list)["RateLimit-Policy"], '"fix_window";q=7;w=60');
  list[0] = { ...policy, limit: 9 };
  assert.equal(rateLimitHeaders(decision, list)["RateLimit-Policy"], '"fix_window";q=9;w=60');
});
