import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, start } from "./workerd.mjs";

const rounds = 50;
const connections = 16;
const limit = 3_000;

/** So long that no window ends while the test runs, and no bucket gives anything back. */
const policies = {
  window: { algorithm: "fix_window_per_key", limit, scale: "365d" },
  counter: { algorithm: "sliding_counter", limit, scale: "365d" },
  log: { algorithm: "sliding_window", limit: 1_000, scale: "365d" },
  level: { algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: "365d" },
  bucket: { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: "365d" },
};

/** A few hot keys, which come to their limits in the course of the rounds, and then others. */
const keys = Object.keys(policies).flatMap((policy) =>
  [1, 2].map((number) => ({ item: { policy, key: `hot:${number}` }, allowed: 0, denied: 0 })),
);

const limitOf = ({ item: { policy } }) => (policy === "log" ? 1_000 : limit);

/** Hits on all connections until workerd is gone. */
function load(workerd, round) {
  const connection = async (_, number) => {
    for (let turn = number; ; turn += 1) {
      // Few at a time, so that they are hot.
      const key = keys[(round + (turn % 3)) % keys.length];
      const { allowed } = await workerd.ask("hit", key.item);
      if (allowed) key.allowed += 1;
      else key.denied += 1;
    }
  };
  return Promise.allSettled(Array.from({ length: connections }, connection));
}

/** What a key has counted. A token bucket counts what is left. */
async function counted(workerd, key) {
  const { count } = await workerd.ask("get", key.item);
  return key.item.policy === "bucket" ? limit - count : count;
}

test("killed under load 50 times with leases and credit, it has counted all that it allowed, and allowed no more", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-leases-"));
  let workerd;
  try {
    await bundle(folder, { policies, timeout: "1m", leases: true, credit: true });
    for (let round = 0; round < rounds; round += 1) {
      workerd = await start(folder);
      for (const key of keys) {
        const count = await counted(workerd, key);
        const words = `${JSON.stringify(key)}: ${count} counted, round ${round}`;
        assert.ok(count >= key.allowed, words);
        assert.ok(key.allowed <= limitOf(key), words);
      }
      const loaded = load(workerd, round);
      const moment = Date.now() + 50 + Math.random() * 250;
      while (Date.now() < moment) await workerd.ask("peek", { policy: "window", key: "other" });
      await workerd.kill();
      await loaded;
    }
    workerd = await start(folder);
    for (const key of keys) {
      const rest = limitOf(key) - (await counted(workerd, key));
      if (rest > 0) assert.equal((await workerd.ask("hit", { ...key.item, cost: rest })).allowed, true);
      assert.equal((await workerd.ask("hit", key.item)).allowed, false);
      assert.ok(key.allowed + Math.max(0, rest) <= limitOf(key), JSON.stringify(key));
    }
    const total = keys.reduce((sum, { allowed }) => sum + allowed, 0);
    context.diagnostic(`${total} hits allowed over ${rounds} kills, none forgotten, none over`);
    assert.ok(total > 3_000);
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
