// A workerd that is killed with leases and credit open has counted every hit that was allowed.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, kills, killUnderLoad, start } from "./workerd.mjs";

const rounds = 50;
const connections = 16;
const limit = 1_000;

/** So long that no window ends while the test runs, and no bucket gives anything back. */
const policies = {
  window: { algorithm: "fix_window_per_key", limit, scale: "365d" },
  counter: { algorithm: "sliding_counter", limit, scale: "365d" },
  log: { algorithm: "sliding_window", limit: 500, scale: "365d" },
  level: { algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: "365d" },
  bucket: { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: "365d" },
};

/** A few hot keys, which come to their limits in the course of the rounds, and then others. */
const keys = Object.keys(policies).flatMap((policy) =>
  [1, 2].map((number) => ({ item: { policy, key: `hot:${number}` }, allowed: 0, denied: 0 })),
);

const limitOf = ({ item: { policy } }) => (policy === "log" ? 500 : limit);

/** Hits on a connection until workerd is gone. */
async function load(ask, round, number) {
  for (let turn = number; ; turn += 1) {
    // Few at a time, so that they are hot.
    const key = keys[(round + (turn % 3)) % keys.length];
    const { allowed } = await ask("hit", key.item);
    if (allowed) key.allowed += 1;
    else key.denied += 1;
  }
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
    for (const [round, answers] of kills(rounds, [10, 300]).entries()) {
      workerd = await start(folder);
      for (const key of keys) {
        const count = await counted(workerd, key);
        const words = `${JSON.stringify(key)}: ${count} counted, round ${round}`;
        assert.ok(count >= key.allowed, words);
        assert.ok(key.allowed <= limitOf(key), words);
      }
      await killUnderLoad(
        workerd,
        answers,
        Array.from({ length: connections }, (_, number) => (ask) => load(ask, round, number)),
      );
    }
    workerd = await start(folder);
    for (const key of keys) {
      const rest = limitOf(key) - (await counted(workerd, key));
      if (rest > 0) assert.equal((await workerd.ask("hit", { ...key.item, cost: rest })).allowed, true);
      assert.equal((await workerd.ask("hit", key.item)).allowed, false);
      assert.ok(key.allowed + Math.max(0, rest) <= limitOf(key), JSON.stringify(key));
    }
    const sum = (name) => keys.reduce((total, key) => total + key[name], 0);
    context.diagnostic(
      `${sum("allowed")} hits allowed and ${sum("denied")} denied over ${rounds} kills, none forgotten, none over`,
    );
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
