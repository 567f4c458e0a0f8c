// A ledger decides as a limiter in memory does, between any load and save, and says exactly when a state changed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ledger, RateLimiter } from "tollgate";
import { named, operations, perform, policyLists } from "../lib/operations.mjs";
import fc from "../lib/properties.mjs";

const now = 1_800_000_000_000;
const policy = { algorithm: "fix_window_per_key", limit: 3, scale: "1m" };

/** A ledger with the methods of a limiter, which is saved and loaded again as JSON whenever `isStored` says so. */
function asLimiter(policies, clock, isStored) {
  const ledger = new Ledger(policies);
  const methods = "hit peek settle extend inc set get expiresAt reset reserve ban unban".split(" ");
  const keyed =
    (method) =>
    (_key, ...args) => {
      const result = ledger[method](clock(), ...args);
      if (isStored()) ledger.load(clock(), JSON.parse(JSON.stringify(ledger.save(clock()).state)));
      return result;
    };
  const limiter = Object.fromEntries(methods.map((method) => [method, keyed(method)]));
  return {
    ...limiter,
    policies: ledger.policies,
    settle: (id, used) => limiter.settle("", id, used),
    cancel: (id) => limiter.settle("", id, 0),
    extend: (id, ttl) => limiter.extend("", id, ttl),
  };
}

test("with and without storing in between, as a limiter in memory", () =>
  fc.assert(
    fc.asyncProperty(
      policyLists,
      fc.array(fc.tuple(operations, fc.boolean()), { minLength: 1, maxLength: 40 }),
      async (policies, all) => {
        let time = now;
        let stores = false;
        const clock = () => time;
        const ledger = asLimiter(named(policies), clock, () => stores);
        const memory = new RateLimiter(named(policies), { clock });
        const [inMemory, inLedger] = [[], []];
        for (const [step, isStored] of all) {
          time += step.after;
          stores = isStored;
          const one = { ...step, key: "a" };
          const expected = await perform(memory, one, inMemory);
          const found = await perform(ledger, one, inLedger);
          // A reset tells whether there was anything, which in memory is until it is swept.
          if (step.op.kind !== "reset") assert.deepEqual(found, expected);
        }
      },
    ),
    { numRuns: 300 },
  ));

test("only what changes a state says so", () => {
  const ledger = new Ledger(policy);
  ledger.load(now, null);
  for (const read of ["peek", "get", "expiresAt", "reset"]) ledger[read](now);
  ledger.hit(now, 4);
  ledger.hit(now, 0);
  assert.deepEqual(ledger.save(now), { state: null, expiresAt: 0, changed: false });
  ledger.hit(now, 3);
  const { state, ...saved } = ledger.save(now);
  assert.deepEqual(saved, { expiresAt: now + 60_000, changed: true });
  ledger.load(now, state);
  ledger.hit(now);
  assert.equal(ledger.save(now).changed, false);
  // It has ended: nothing is there, and nothing changed.
  ledger.load(now + 60_000, state);
  ledger.hit(now + 60_000, 4);
  assert.deepEqual(ledger.save(now + 60_000), { state: null, expiresAt: 0, changed: false });
  ledger.load(now, state);
  assert.equal(ledger.reset(now), true);
  assert.deepEqual(ledger.save(now), { state: null, expiresAt: 0, changed: true });
});

test("a former shape stays, and load names the policies that start unused", () => {
  const ledger = new Ledger(policy);
  ledger.hit(now, 3);
  const { state } = ledger.save(now);
  const hourly = new Ledger({ ...policy, scale: "1h" });
  assert.deepEqual(hourly.load(now, state), ["fix_window_per_key"]);
  assert.equal(hourly.hit(now, 2).allowed, true);
  assert.deepEqual(ledger.load(now, hourly.save(now).state), []);
  assert.equal(ledger.get(now), 3);
});

test("a state that cannot be read is an error, after which the key is as if never used", () => {
  const ledger = new Ledger(policy);
  ledger.hit(now, 2);
  for (const state of ["text", 7, {}, { version: 4, rows: [7] }, { version: 4 }])
    assert.throws(() => ledger.load(now, state), { code: "invalid_state" });
  assert.throws(() => ledger.load(now, { version: 9, rows: [] }), { code: "unsupported_version" });
  assert.equal(ledger.get(now), 0);
});

test("bad input changes nothing", () => {
  const ledger = new Ledger([
    { ...policy, name: "a" },
    { algorithm: "concurrency", limit: 1, name: "b" },
  ]);
  const codes = {
    invalid_time: [() => ledger.peek(-1), () => ledger.load("now", null), () => ledger.save(Number.NaN)],
    invalid_cost: [
      () => ledger.reserve(now, -1),
      () => ledger.inc(now, 0.5, "a"),
      () => ledger.peek(now, "1"),
    ],
    invalid_count: [() => ledger.set(now, -1, "a"), () => ledger.set(now, "1", "a")],
    unknown_policy: [() => ledger.get(now), () => ledger.get(now, "c"), () => ledger.peek(now, { c: 1 })],
    reserve_only: [() => ledger.hit(now), () => ledger.inc(now, 1, "b"), () => ledger.set(now, 1, "b")],
    policy_mismatch: [() => ledger.peek(now, 1, policy)],
    invalid_reservation: [() => ledger.settle(now, "id"), () => ledger.extend(now, "", "1m")],
    invalid_option: [
      () => ledger.reserve(now, 1, { ttl: 0 }),
      () => ledger.reset(now, { all: true }),
      () => ledger.extend(now, `${"0".repeat(32)}.1.a.s`, "soon"),
    ],
  };
  for (const [code, calls] of Object.entries(codes))
    for (const call of calls) assert.throws(call, { name: "TollgateError", code }, String(call));
  assert.equal(ledger.save(now).changed, false);
  assert.throws(() => new Ledger({ ...policy, algorithm: "sliding_window", limit: 1_001 }), {
    code: "invalid_policy",
  });
});

test("disposed of, it does nothing", () => {
  const ledger = new Ledger(policy);
  ledger[Symbol.dispose]();
  ledger[Symbol.dispose]();
  for (const call of [() => ledger.hit(now), () => ledger.load(now, null), () => ledger.save(now)])
    assert.throws(call, { code: "disposed" });
});
