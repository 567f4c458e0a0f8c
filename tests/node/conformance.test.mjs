// The traces recorded from Hammer, through the package: in memory, and step by step over stored states.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { RateLimiter, step } from "tollgate";

const folder = new URL("../vectors/", import.meta.url);
const files = readdirSync(folder).filter((name) => name !== "addresses.json");

/** Answers each operation of a trace by a limiter in memory. */
function inMemory(policy) {
  let now = 0;
  const limiter = new RateLimiter(policy, { clock: () => now });
  return ({ at, op, key, cost, count }) => {
    now = at;
    switch (op) {
      case "hit": {
        const peeked = limiter.peek(key, cost);
        const decision = limiter.hit(key, cost);
        assert.deepEqual(peeked, decision, "a peek answers what the hit does");
        return decision;
      }
      case "inc":
        return limiter.inc(key, cost);
      case "set":
        return limiter.set(key, count);
      case "get":
        return limiter.get(key);
      case "expires_at":
        return limiter.expiresAt(key);
      default:
        return assert.fail(`a trace has an unknown operation: ${op}`);
    }
  };
}

/** Answers each operation of a trace from what was stored as JSON. */
function byStep(policy) {
  const stored = new Map();
  return ({ at, op, key, cost, count }) => {
    const operation = op === "expires_at" ? "expiresAt" : op;
    const amount = (op === "set" ? count : cost) ?? 0;
    const before = JSON.parse(stored.get(key) ?? "null");
    if (op === "hit") {
      const peeked = step(policy, before, "peek", amount, at);
      const hit = step(policy, before, "hit", amount, at);
      assert.deepEqual(peeked.decision, hit.decision, "a peek answers what the hit does");
      assert.equal(peeked.changed, false);
    }
    const { decision, value, state } = step(policy, before, operation, amount, at);
    stored.set(key, JSON.stringify(state));
    return decision ?? value;
  };
}

/** The answer in the words of the trace. */
function inWordsOf(expect, answer) {
  if ("value" in expect) return { value: answer };
  const { allowed, count, retryAfter } = answer;
  if (allowed) return retryAfter === 0 ? { allow: count } : { allow: count, retryAfter };
  if (retryAfter === Number.POSITIVE_INFINITY) return { deny: "never" };
  return { deny: expect.deny === "any" && retryAfter > 0 ? "any" : retryAfter };
}

for (const file of files) {
  describe(file, () => {
    const traces = JSON.parse(readFileSync(new URL(file, folder), "utf8"));

    for (const [name, subject] of Object.entries({ inMemory, byStep })) {
      test(name, () => {
        assert.equal(traces.length, 24);
        for (const [number, { policy, ops }] of traces.entries()) {
          const answer = subject(policy);
          for (const [position, op] of ops.entries()) {
            const context = `trace ${number}, operation ${position} (${op.op} at ${op.at})`;
            assert.deepEqual(inWordsOf(op.expect, answer(op)), op.expect, context);
          }
        }
      });
    }
  });
}

test("there is a file for every algorithm that Hammer has", () => assert.equal(files.length, 5));
