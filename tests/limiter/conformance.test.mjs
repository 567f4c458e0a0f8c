// The traces recorded from Hammer, through the package and `tollgate/js`: in memory, and step by step over stored states.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as whole from "tollgate";
import * as withoutWasm from "tollgate/js";
import { answer, files, inWordsOf, looseWaits, looseWordsIn, tracesIn } from "../lib/traces.mjs";

/** Answers each operation of a trace by a limiter in memory. */
function inMemory({ RateLimiter }, policy) {
  let now = 0;
  const limiter = new RateLimiter(policy, { clock: () => now });
  return (op) => {
    now = op.at;
    return answer(limiter, op);
  };
}

/** Answers each operation of a trace from what was stored as JSON. */
function byStep({ step }, policy) {
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

for (const file of files) {
  describe(file, () => {
    const traces = tracesIn(file);

    for (const [entry, module] of Object.entries({ tollgate: whole, "tollgate/js": withoutWasm }))
      for (const subject of [inMemory, byStep])
        test(`${entry}, ${subject.name}`, async () => {
          assert.equal(traces.length, 24);
          for (const [number, { policy, ops }] of traces.entries()) {
            const answerTo = subject(module, policy);
            for (const [position, op] of ops.entries()) {
              const context = `trace ${number}, operation ${position} (${op.op} at ${op.at})`;
              assert.deepEqual(inWordsOf(op.expect, await answerTo(op)), op.expect, context);
            }
          }
        });
  });
}

test("there is a file for every algorithm that Hammer has", () => assert.equal(files.length, 5));

test("every reason for a loose wait is needed by a trace", () => {
  const all = files.flatMap(tracesIn);
  for (const [word, reasons] of Object.entries(looseWaits)) {
    const algorithms = all
      .filter(({ ops }) => looseWordsIn(ops).has(word))
      .map(({ policy }) => policy.algorithm);
    assert.deepEqual(new Set(Object.keys(reasons)), new Set(algorithms), word);
  }
});
