// The errors in tests/errors.json, in the same words as in the Rust crate, which has a reader of its own.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { RateLimiter, step, TollgateError } from "tollgate";

const errors = JSON.parse(readFileSync(new URL("../errors.json", import.meta.url), "utf8"));

function assertError(work, code, message) {
  assert.throws(work, (error) => {
    assert.ok(error instanceof TollgateError, `${error}`);
    assert.deepEqual([error.code, error.message], [code, message]);
    return true;
  });
}

test("in policies", () => {
  for (const [policies, code, message] of errors.policies)
    assertError(() => new RateLimiter(policies), code, message);
});

test("in policies for one call", () => {
  for (const [own, call, code, message] of errors.calls) {
    const limiter = new RateLimiter(own);
    assertError(() => limiter.hit("key", 1, call), code, message);
    assertError(() => limiter.peek("key", 1, call), code, message);
  }
});

test("in stored states", () => {
  for (const [policies, state, code, message] of errors.states)
    assertError(() => step(policies, state, "hit", 1, 500), code, message);
});
