// Bad input of every kind is a typed error that names the field, and the store is not called for it.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { hitAll, StoreLimiter } from "tollgate/store";
import { memoryStore } from "./lib/stores.mjs";

const policy = { algorithm: "fix_window", limit: 3, scale: "1h" };
const store = memoryStore();
const limiter = new StoreLimiter(policy, { store });
const several = new StoreLimiter(
  [
    { ...policy, name: "a" },
    { algorithm: "concurrency", limit: 1, name: "b" },
  ],
  { store },
);

/** Checks that a call is rejected with a code, and that the store was not called. */
async function rejects(call, code, message = /./) {
  store.calls.length = 0;
  await assert.rejects(async () => call(), { name: "TollgateError", code, message });
  assert.deepEqual(store.calls, []);
}

describe("options", () => {
  const options = {
    store: [undefined, null, {}, { get() {} }, { swap() {} }, { get: 1, swap: 2 }, "redis://", 7],
    clock: [null, 7, "now"],
    prefix: [null, 7, "\ud800", "x".repeat(257)],
    timeout: [0, -1, 0.5, "soon", "31s", Number.NaN],
    maxTries: [0, -1, 0.5, "5", 10_001, Number.NaN],
    onError: ["pass", null, true, 1],
    fallback: [null, {}, { hit() {} }, { share: 0.5 }, 7],
    more: [1],
  };
  for (const [name, values] of Object.entries(options))
    for (const value of values)
      test(`${name}: ${typeof value === "string" ? value.slice(0, 9) : String(value)}`, () =>
        rejects(
          () => new StoreLimiter(policy, { store, [name]: value }),
          "invalid_option",
          new RegExp(name),
        ));
  test("none, or what is no object", async () => {
    for (const options of [undefined, null, 7, "store", [store]])
      await rejects(() => new StoreLimiter(policy, options), "invalid_option");
  });
  test("policies", async () => {
    await rejects(() => new StoreLimiter({ ...policy, limit: 0 }, { store }), "invalid_policy");
    await rejects(() => new StoreLimiter([], { store }), "invalid_policy");
    await rejects(() => new StoreLimiter({ ...policy, size: 1 }, { store }), "unknown_field");
    const long = { algorithm: "sliding_window", limit: 1_001, scale: "1h" };
    await rejects(() => new StoreLimiter(long, { store }), "invalid_policy", /stored outside the process/);
  });
});

describe("keys", () => {
  const keys = [
    "",
    "k".repeat(1_025),
    "ключ".repeat(129),
    "\ud800",
    7,
    7n,
    null,
    undefined,
    {},
    ["key"],
    Symbol("key"),
  ];
  for (const key of keys)
    test(String(typeof key === "string" ? key.slice(0, 9) : typeof key), async () => {
      for (const operation of ["hit", "peek", "reserve", "inc", "get", "expiresAt", "reset"])
        await rejects(() => limiter[operation](key), "invalid_key", /^key/);
      await rejects(() => limiter.set(key, 1), "invalid_key", /^key/);
    });
  test("the longest are accepted", async () => {
    for (const key of ["k".repeat(1_024), "ключ".repeat(128), "\0"])
      assert.equal((await limiter.hit(key)).allowed, true);
  });
});

describe("amounts", () => {
  for (const cost of [
    -1,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    "1",
    null,
    true,
    [],
    {},
    new Map(),
    1n,
  ])
    test(`${typeof cost} ${String(cost)}`, async () => {
      for (const operation of ["hit", "peek", "reserve"])
        await rejects(() => limiter[operation]("key", cost), "invalid_cost", /^cost/);
      if (cost !== -1) await rejects(() => limiter.inc("key", cost), "invalid_cost", /^cost/);
      await rejects(() => limiter.set("key", cost), "invalid_count", /^count/);
    });
  test("by policy", async () => {
    await rejects(() => several.reserve("key", { c: 1 }), "unknown_policy");
    await rejects(() => several.reserve("key", { a: -1 }), "invalid_cost");
    await rejects(() => several.peek("key", { a: "1" }), "invalid_cost");
  });
  test("a getter is read once", async () => {
    let reads = 0;
    const costs = {
      get fix_window() {
        reads++;
        return 1;
      },
    };
    await limiter.peek("key", costs);
    assert.equal(reads, 1);
  });
});

describe("policies of a call, and names", () => {
  test("another shape", async () => {
    for (const operation of ["hit", "peek"]) {
      await rejects(() => limiter[operation]("key", 1, { ...policy, scale: "1m" }), "policy_mismatch");
      await rejects(
        () => limiter[operation]("key", 1, [policy, { ...policy, name: "b" }]),
        "policy_mismatch",
      );
      await rejects(() => limiter[operation]("key", 1, { ...policy, limit: -1 }), "invalid_policy");
      for (const wrong of [null, 7, "policy", []])
        await rejects(() => limiter[operation]("key", 1, wrong), "invalid_policy");
    }
    await rejects(() => limiter.reserve("key", 1, { policies: { ...policy, scale: 5 } }), "policy_mismatch");
  });
  test("a log that is too long, or a bucket that never fills, for a call", async () => {
    const log = { algorithm: "sliding_window", limit: 10, scale: "1h" };
    const logs = new StoreLimiter(log, { store });
    await rejects(() => logs.hit("key", 1, { ...log, limit: 1_001 }), "invalid_policy", /stored outside/);
    const bucket = { algorithm: "token_bucket", capacity: 10, refillRate: 1, per: "52w" };
    const buckets = new StoreLimiter(bucket, { store });
    await rejects(() => buckets.hit("key", 1, { ...bucket, capacity: 2 ** 52 }), "invalid_policy", /fills/);
  });
  test("names of policies", async () => {
    await rejects(() => several.get("key"), "unknown_policy", /^policy is required/);
    await rejects(() => several.inc("key", 1, "c"), "unknown_policy");
    await rejects(() => limiter.set("key", 1, 7), "unknown_policy");
  });
  test("a policy that counts only reservations", async () => {
    await rejects(() => several.hit("key"), "reserve_only");
    await rejects(() => several.inc("key", 1, "b"), "reserve_only");
    await rejects(() => several.set("key", 1, "b"), "reserve_only");
  });
});

describe("reservations", () => {
  test("options", async () => {
    for (const ttl of [0, -1, "soon", "25h", null, 1.5])
      await rejects(() => limiter.reserve("key", 1, { ttl }), "invalid_option", /^ttl/);
    for (const options of [null, 7, "1m", []])
      await rejects(() => limiter.reserve("key", 1, options), "invalid_option");
    await rejects(() => limiter.reserve("key", 1, { time: 1 }), "invalid_option");
    for (const options of [null, 7, { reservations: 1 }, { all: true }])
      await rejects(() => limiter.reset("key", options), "invalid_option");
  });
  test("ids", async () => {
    const id = `${"0".repeat(32)}.1.a.skey`;
    const keyless = id.slice(0, -3);
    for (const wrong of ["", "id", id.slice(1), 7, null, undefined, {}, `${"0".repeat(32)}.1.a.x1`])
      for (const operation of ["settle", "cancel", "extend"])
        await rejects(() => limiter[operation](wrong, "1m"), "invalid_reservation", /^id/);
    for (const operation of ["settle", "cancel"]) {
      await rejects(() => limiter[operation](keyless), "invalid_key");
      await rejects(() => limiter[operation](`${"0".repeat(32)}.1.a.n7`), "invalid_key");
    }
    await rejects(() => limiter.extend(id, "soon"), "invalid_option", /^ttl/);
    await rejects(() => limiter.settle(id, -1), "invalid_cost");
    await rejects(() => limiter.settle(id, { b: 1 }), "unknown_policy");
    await rejects(() => limiter.settle(id.replace(".a.", ".p."), 1), "invalid_cost", /by policy/);
  });
  test("hitAll", async () => {
    await rejects(
      () => hitAll([{ limiter: {}, key: "key" }]),
      "invalid_option",
      /a RedisLimiter, StoreLimiter or/,
    );
    await rejects(() => hitAll([{ limiter, key: "" }]), "invalid_key");
    await rejects(() => hitAll([{ limiter, key: "a", cost: -1 }]), "invalid_cost");
  });
});
