// Options that are invalid, misspelt, or those of another rate limiter are errors that say what to write.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { TollgateError } from "tollgate";
import { frameworks } from "./lib/frameworks.mjs";
import { limiterOf, policyOf } from "./lib/limits.mjs";

const policy = policyOf(1);

/** Options of other rate limiters, and fields of a policy in the wrong place, with what takes their place. */
const familiar = {
  windowMs: /policy: \{ algorithm: "fix_window_per_key", limit: 100, scale: "1m" \}/,
  timeWindow: /policy: /,
  duration: /policy: /,
  max: /policy: /,
  limit: /policy: /,
  points: /policy: /,
  keyGenerator: /use key$/,
  id: /use key$/,
  identifier: /policy: \{ name: /,
  handler: /onDenied: a function/,
  message: /onDenied/,
  statusCode: /onDenied/,
  errorMessage: /onDenied/,
  errorResponseBuilder: /onDenied/,
  onExceeded: /onDenied/,
  onLimitReached: /onDenied/,
  onExceeding: /onDecision/,
  requestPropertyName: /onDecision/,
  standardHeaders: /headers: "standard", "legacy" or "none"/,
  legacyHeaders: /headers: /,
  disableHeader: /headers: /,
  addHeaders: /headers: /,
  addHeadersOnExceeding: /headers: /,
  enableDraftSpec: /headers: /,
  skipSuccessfulRequests: /charge: "failures"/,
  skipFailedRequests: /charge: "successes"/,
  requestWasSuccessful: /charge/,
  store: /limiter/,
  redis: /limiter/,
  client: /limiter/,
  db: /limiter/,
  binding: /limiter/,
  allowList: /skip/,
  whitelist: /skip/,
  passOnStoreError: /onError: "allow"/,
  skipOnError: /onError: "allow"/,
  ipv6Subnet: /ipKey\(address, \{ ipv6Prefix: 56 \}\)/,
  prefix: /key/,
  nameSpace: /key/,
  groupId: /key/,
  hook: /the hook to which you add it/,
  algorithm: /policy: \{ algorithm: /,
  policies: /policy: \{ algorithm: /,
  validate: /nothing/,
};

for (const [name, { rateLimit }] of Object.entries(frameworks)) {
  const rejects = (options, message) =>
    assert.throws(
      () => rateLimit(options),
      (error) => {
        assert.ok(error instanceof TollgateError, String(error));
        assert.match(error.message, message);
        return true;
      },
    );

  describe(name, () => {
    for (const [option, instead] of Object.entries(familiar)) {
      // An option of the plugin, tested in fastify-plugin.test.mjs.
      if (name === "fastify" && option === "hook") continue;
      test(`${option} says what to write instead`, () => {
        rejects({ policy, [option]: 5 }, new RegExp(`^options: "${option}" is not accepted; use `));
        rejects({ policy, [option]: 5 }, instead);
      });
    }

    test("an option that is misspelt names those there are", () => {
      rejects(
        { policy, keys: () => "a" },
        /^options: "keys" is not accepted; use one of policy, limiter, key, /,
      );
      rejects({ policy, toString: 1 }, /^options: "toString" is not accepted; use one of/);
    });

    test("an invalid value is an error that says what is accepted", () => {
      rejects(undefined, /^options: undefined is not accepted; use an object/);
      rejects(null, /^options: null is not accepted; use an object/);
      rejects({}, /^policy: undefined is not accepted; use \{ algorithm: "sliding_window"/);
      rejects({ policy, key: "ip" }, /^key: "ip" is not accepted; use a function/);
      rejects({ policy, skip: true }, /^skip: true .* use inRanges\(\[…\]\) or a function$/);
      for (const option of ["policyFor", "onDecision"])
        rejects({ policy, [option]: true }, new RegExp(`^${option}: true is not accepted; use a function`));
      rejects(
        { policy, charge: "some" },
        /^charge: "some" .* use "all", "failures", "successes" or a function$/,
      );
      rejects({ policy, charge: 5 }, /^charge: 5 .* use "all", "failures", "successes" or a function$/);
      rejects({ policy, headers: "draft-8" }, /^headers: "draft-8" .* use "standard", "legacy" or "none"$/);
      rejects({ policy, headers: false }, /^headers: false .* use "standard", "legacy" or "none"$/);
      rejects({ policy, onDenied: "throw" }, /^onDenied: "throw" .* use "deny", "allow" or a function$/);
      rejects({ policy, onError: "pass" }, /^onError: "pass" .* use "allow", "deny", "throw" or a function$/);
      for (const timeout of [0, -1, Number.NaN, 2 ** 31, "2s"])
        rejects({ policy, timeout }, /^timeout: .* use a number of milliseconds up to 2147483647$/);
      for (const limiter of [1, "memory", {}, { hit: 1 }])
        rejects({ policy, limiter }, /^limiter: .* use a limiter with the methods of RateLimiter/);
      rejects({ limiter: { hit() {} } }, /^policy is required \(neither the limiter/);
      rejects({ policy: { algorithm: "fix_window", limit: 0, scale: "1m" } }, /^limit: 0 is not an integer/);
      rejects({ policy, fallback: { algorithm: "fix_windoe" } }, /algorithm/);
    });

    test("options are read once, when the guard is made", () => {
      let reads = 0;
      const options = {
        get policy() {
          reads += 1;
          return policy;
        },
      };
      rateLimit(options);
      assert.equal(reads, 1);
      assert.ok(rateLimit({ limiter: limiterOf(policy), charge: undefined, headers: undefined }));
    });
  });
}

test("fetch without a handler cannot charge by the response", () => {
  assert.throws(() => frameworks.fetch.rateLimit({ policy, charge: "failures" }), {
    code: "invalid_option",
    message: /^charge: "failures" is not accepted; use rateLimit\(options, handler\)/,
  });
});
