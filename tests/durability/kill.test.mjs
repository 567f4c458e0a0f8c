import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, start } from "./workerd.mjs";

const rounds = 20;
const connections = 16;
const limit = 400;

/** So long that no window ends while the test runs, and no bucket gives anything back. */
const policies = {
  window: { algorithm: "fix_window_per_key", limit, scale: "365d" },
  log: { algorithm: "sliding_window", limit, scale: "365d" },
  bucket: { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: "365d" },
  count: { algorithm: "fix_window_per_key", limit: 1_000_000, scale: "365d" },
};
const names = Object.keys(policies);

/** Hits all keys over and over on some connections until workerd is gone. What was acknowledged is noted. */
function load(workerd, acknowledged) {
  const connection = async (_, number) => {
    for (let turn = number; ; turn += 1) {
      const policy = names[turn % names.length];
      const { allowed } = await workerd.ask("hit", { policy, key: "durable" });
      if (allowed) acknowledged[policy] += 1;
    }
  };
  return Promise.allSettled(Array.from({ length: connections }, connection));
}

/** What a key has counted. A bucket counts what is left. */
async function counted(workerd, policy) {
  const { count } = await workerd.ask("get", { policy, key: "durable" });
  return policy === "bucket" ? limit - count : count;
}

test("killed under load 20 times, it has counted all that it acknowledged and allowed no more than the limit", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-durability-"));
  const acknowledged = Object.fromEntries(names.map((name) => [name, 0]));
  let workerd;
  try {
    await bundle(folder, { policies, timeout: "1m" });
    for (let round = 0; round < rounds; round += 1) {
      workerd = await start(folder);
      for (const name of names) {
        const count = await counted(workerd, name);
        assert.ok(
          count >= acknowledged[name],
          `${name}: ${count} counted, ${acknowledged[name]} acknowledged`,
        );
        // What was written when the kill came, but not yet answered: one hit for each connection at the most.
        assert.ok(count <= acknowledged[name] + connections * round, `${name}: ${count} counted`);
      }
      const loaded = load(workerd, acknowledged);
      const moment = Date.now() + 50 + Math.random() * 450;
      while (Date.now() < moment) await workerd.ask("peek", { policy: "count", key: "other" });
      await workerd.kill();
      await loaded;
    }
    context.diagnostic(`acknowledged before the last kill: ${JSON.stringify(acknowledged)}`);
    workerd = await start(folder);
    for (const name of ["window", "log", "bucket"]) {
      while ((await workerd.ask("hit", { policy: name, key: "durable" })).allowed) acknowledged[name] += 1;
      assert.ok(acknowledged[name] <= limit, `${name}: ${acknowledged[name]} allowed`);
      assert.equal(await counted(workerd, name), limit);
    }
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
