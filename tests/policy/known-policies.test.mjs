// Policies of calls are read once, by their object and by their fields, and what is known is never used for other policies.

import assert from "node:assert/strict";
import test from "node:test";
import { RateLimiter } from "tollgate";
import { rateLimit } from "tollgate/fetch";
import { StoreLimiter } from "tollgate/store";
import { memoryStore } from "tollgate/testing";

const window = (limit, more) => ({ algorithm: "fix_window", limit, scale: "1m", ...more });

/** Returns a function that resolves to the limit under which a hit with these policies was decided. */
function limits() {
  const limiter = new StoreLimiter(window(100), { store: memoryStore() });
  return async (policies) => (await limiter.hit("all", 0, policies)).limit;
}

test("an object that changes has its new numbers", async () => {
  const limitOf = limits();
  const plan = window(5);
  assert.equal(await limitOf(plan), 5);
  assert.equal(await limitOf(plan), 5);
  plan.limit = 7;
  assert.equal(await limitOf(plan), 7);
  const list = [plan];
  assert.equal(await limitOf(list), 7);
  list[0] = window(9);
  assert.equal(await limitOf(list), 9);
  plan.scale = "2m";
  await assert.rejects(limitOf(plan), { code: "policy_mismatch" });
});

test("objects with the same fields have the same numbers, others their own", async () => {
  const limitOf = limits();
  for (const limit of [5, 6, 5, 6]) assert.equal(await limitOf(window(limit)), limit);
  // No name of a field or a policy makes two lists alike.
  assert.equal(await limitOf(window(8, { name: "a" })), 8);
  assert.equal(await limitOf(window(9, { name: "a,limit=8" })), 9);
});

test("a getter decides by the value that was checked", async () => {
  const limitOf = limits();
  let value = 9;
  const plan = { algorithm: "fix_window", scale: "1m" };
  Object.defineProperty(plan, "limit", { enumerable: true, get: () => (value < 20 ? ++value : -1) });
  assert.equal(await limitOf(plan), 10);
  for (let last = 10; value < 19; last = value) {
    const limit = await limitOf(plan);
    assert.ok(limit > last && limit <= value);
  }
  value = 20;
  await assert.rejects(limitOf(plan), /limit: -1|limit: a negative number/);
});

test("more policies than are known have their own numbers", async () => {
  const limitOf = limits();
  for (let round = 0; round < 2; round++)
    for (let limit = 200; limit < 1_400; limit++) assert.equal(await limitOf(window(limit)), limit);
});

test("invalid policies are an error each time", async () => {
  const limitOf = limits();
  assert.equal(await limitOf(window(5, { utcOffset: undefined })), 5);
  for (const wrong of [window(0), window("5"), window(5, { scale: {} }), [window(5), null]])
    for (let round = 0; round < 2; round++) await assert.rejects(limitOf(wrong), { name: "TollgateError" });
});

test("a guard decides by the policies of each request", async () => {
  const seen = [];
  const limited = rateLimit(
    {
      limiter: new RateLimiter(window(100)),
      key: () => "all",
      policyFor: ({ policies }) => policies,
      onDecision: ({ limit }) => seen.push(limit),
    },
    () => new Response(),
  );
  const plan = window(5);
  for (const policies of [plan, plan, window(6), window(5), [plan]])
    await limited({ policies, headers: new Headers() });
  plan.limit = 7;
  await limited({ policies: plan, headers: new Headers() });
  assert.deepEqual(seen, [5, 5, 6, 5, 5, 7]);
});
