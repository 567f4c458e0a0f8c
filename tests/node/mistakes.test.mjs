// The mistakes in tests/mistakes.json: each is told here in the same words as by the Rust crate, which has a reader of its own.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { RateLimiter, step, TollgateError } from "tollgate";

const mistakes = JSON.parse(readFileSync(new URL("../mistakes.json", import.meta.url), "utf8"));

function assertTold(work, code, message) {
  assert.throws(work, (error) => {
    assert.ok(error instanceof TollgateError, `${error}`);
    assert.deepEqual([error.code, error.message], [code, message]);
    return true;
  });
}

test("in policies", () => {
  for (const [policies, code, message] of mistakes.policies)
    assertTold(() => new RateLimiter(policies), code, message);
});

test("in policies for one call", () => {
  for (const [own, call, code, message] of mistakes.calls) {
    const limiter = new RateLimiter(own);
    assertTold(() => limiter.hit("key", 1, call), code, message);
    assertTold(() => limiter.peek("key", 1, call), code, message);
  }
});

test("in stored states", () => {
  for (const [policies, state, code, message] of mistakes.states)
    assertTold(() => step(policies, state, "hit", 1, 500), code, message);
});
