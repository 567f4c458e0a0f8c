// The wasm memory grows under limiters in use, and the memory of dropped limiters is reused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { RateLimiter, step } from "tollgate";

/** The core is compiled when it is first used, so its memory can be had by looking on. */
let memory;
WebAssembly.Instance = class extends WebAssembly.Instance {
  constructor(...args) {
    super(...args);
    memory = this.exports.memory;
  }
};

const now = 1_767_227_321_000;
const policy = { algorithm: "fix_window_per_key", limit: 3, scale: "1s", denied: "count" };
const made = (policies = policy) => new RateLimiter(policies, { clock: () => now });
const bytes = () => memory.buffer.byteLength;

test("it grows under a limiter in use, and under its neighbour", () => {
  const neighbour = made();
  const limiter = made();
  neighbour.hit("a");
  const before = memory.buffer;
  for (let key = 0; key < 300_000; key++) {
    const cost = key % 5;
    const { count, allowed } = limiter.hit(`user:${key}`, cost);
    if (count !== cost || allowed !== cost <= 3) assert.fail(`${cost} counted as ${count}`);
  }
  assert.equal(before.detached, true);
  assert.equal(neighbour.hit("a").count, 2);
  assert.equal(limiter.size, 240_000);
  for (let key = 0; key < 300_000; key++) {
    if (limiter.get(`user:${key}`) !== key % 5) assert.fail(`user:${key}`);
  }
  limiter[Symbol.dispose]();
});

test("the memory of a disposed limiter is reused", () => {
  const use = () => {
    const limiter = made();
    for (let key = 0; key < 200_000; key++) limiter.hit(key);
    limiter[Symbol.dispose]();
  };
  use();
  const before = bytes();
  for (let round = 0; round < 5; round++) use();
  assert.equal(bytes(), before);
});

test("the memory of dropped limiters is reused", async () => {
  assert.ok(globalThis.gc, "run with --expose-gc");
  const dropSome = async () => {
    for (let limiter = 0; limiter < 200; limiter++) {
      const dropped = made({ ...policy, name: `policy ${limiter}` });
      for (let key = 0; key < 1_000; key++) dropped.hit(key);
    }
    // Finalizers run in a turn of their own, after the collection.
    globalThis.gc();
    await turn();
    await turn();
  };
  // Enough to fill what the tests before have left free.
  for (let round = 0; round < 3; round++) await dropSome();
  const before = bytes();
  for (let round = 0; round < 20; round++) await dropSome();
  // Kept, the limiters would take over 60 MB, and their policies alone 1.5 MB.
  assert.ok(bytes() - before < 500_000, `${bytes() - before} bytes more`);
});

test("the memory of a step is reused at once", () => {
  const log = { algorithm: "sliding_window", limit: 1_000, scale: "1d" };
  const { state } = step(log, null, "set", 1_000, now);
  const before = bytes();
  for (let round = 0; round < 20_000; round++) step(log, state, "hit", 1, now);
  assert.equal(bytes(), before);
});
