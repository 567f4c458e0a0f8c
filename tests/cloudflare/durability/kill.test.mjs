// A workerd that is killed under load has counted every acknowledged hit, and allows no more than the limit.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, kills, killUnderLoad, start } from "./workerd.mjs";

const rounds = 20;
const connections = 16;
const limit = 1_000;

/** So long that no window ends while the test runs, and no bucket gives anything back. */
const policies = {
  window: { algorithm: "fix_window_per_key", limit, scale: "365d" },
  log: { algorithm: "sliding_window", limit, scale: "365d" },
  level: { algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: "365d" },
  bucket: { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: "365d" },
};
const names = Object.keys(policies);

/** A key of each connection's own has one hit under way at the most, so that no other hides that one is lost. */
const own = Array.from({ length: connections }, (_, number) => ({
  item: { policy: names[number % names.length], key: `own:${number}` },
  acknowledged: 0,
  inFlight: 1,
}));
const shared = names.map((policy) => ({
  item: { policy, key: "shared" },
  acknowledged: 0,
  inFlight: connections,
}));

/** Hits the key of a connection's own and a shared one in turn, until workerd is gone. */
async function load(ask, number) {
  const hit = async (key) => {
    const { allowed } = await ask("hit", key.item);
    if (allowed) key.acknowledged += 1;
  };
  for (let turn = number; ; turn += 1) {
    await hit(own[number]);
    await hit(shared[turn % shared.length]);
  }
}

/** What a key has counted. A token bucket counts what is left. */
async function counted(workerd, { item }) {
  const { count } = await workerd.ask("get", item);
  return item.policy === "bucket" ? limit - count : count;
}

/** All that was acknowledged is counted, and besides only what was under way at the kills. */
async function check(workerd, round) {
  for (const key of [...own, ...shared]) {
    const count = await counted(workerd, key);
    const words = `${JSON.stringify(key.item)}: ${count} counted, ${key.acknowledged} acknowledged, round ${round}`;
    assert.ok(count >= key.acknowledged, words);
    assert.ok(count <= key.acknowledged + key.inFlight * round, words);
  }
}

test("killed under load 20 times, it has counted all that it acknowledged and allowed no more than the limit", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-durability-"));
  let workerd;
  try {
    await bundle(folder, { policies, timeout: "1m" });
    for (const [round, answers] of kills(rounds, [10, 200]).entries()) {
      workerd = await start(folder);
      await check(workerd, round);
      await killUnderLoad(
        workerd,
        answers,
        own.map((_, number) => (ask) => load(ask, number)),
      );
    }
    workerd = await start(folder);
    await check(workerd, rounds);
    const total = [...own, ...shared].reduce((sum, { acknowledged }) => sum + acknowledged, 0);
    context.diagnostic(`${total} hits acknowledged, none lost`);
    for (const key of shared) {
      const rest = limit - (await counted(workerd, key));
      const { allowed } = await workerd.ask("hit", { ...key.item, cost: rest });
      assert.equal(allowed, true);
      assert.equal((await workerd.ask("hit", key.item)).allowed, false);
      assert.ok(key.acknowledged + rest <= limit);
    }
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
