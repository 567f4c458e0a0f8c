// A workerd that is killed under load has every reservation that it acknowledged.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, kills, killUnderLoad, start } from "./workerd.mjs";

const rounds = 10;
const connections = 16;
const limit = 5_000;

/** So long that no window ends while the test runs, no bucket gives anything back, and no reservation expires. */
const policies = {
  window: { algorithm: "fix_window_per_key", limit, scale: "365d" },
  counter: { algorithm: "sliding_counter", limit, scale: "365d" },
  level: { algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: "365d" },
  bucket: { algorithm: "token_bucket", capacity: limit, refillRate: 1, per: "365d" },
  running: { algorithm: "concurrency", limit: 100, ttl: "1d" },
};
const names = ["window", "counter", "level", "bucket"];

/** The keys: each has one connection, so that what is under way at a kill is one operation. */
const keys = Array.from({ length: connections }, (_, number) => ({
  key: `own:${number}`,
  policy: [names[number % names.length], "running"],
  /** What was charged, and what is open, as far as it was acknowledged. */
  charged: 0,
  open: [],
  /** What was asked for when workerd was killed: nobody knows whether it was done. */
  lost: 0,
  closing: undefined,
}));

/** Reserves, and settles in part, in full or not at all, until workerd is gone. */
async function load(ask, own, turn) {
  const { policy, key } = own;
  const [name] = policy;
  for (let step = turn; ; step += 1) {
    const cost = 1 + (step % 3);
    own.asked = cost;
    const { allowed, id } = await ask("reserve", { policy, key, cost: { [name]: cost }, ttl: "1d" });
    own.asked = 0;
    assert.equal(allowed, true);
    own.open.push({ id, cost });
    if (step % 5 === 0) await ask("extend", { policy, id, ttl: "1d" });
    if (own.open.length > 3) await close(ask, own, own.open[step % 4], step % (cost + 1));
  }
}

/** Settles a reservation: by then it is open, or it was settled when workerd was killed. */
async function close(ask, own, reservation, used) {
  own.closing = { ...reservation, used };
  const { policy } = own;
  const item = { policy, id: reservation.id };
  const { settlement } = await (used === 0
    ? ask("cancel", item)
    : ask("settle", { ...item, used: { [policy[0]]: used } }));
  own.closing = undefined;
  own.open = own.open.filter(({ id }) => id !== reservation.id);
  own.charged += used;
  return settlement;
}

/** What a key has counted. A token bucket counts what is left. */
async function counted(workerd, { policy, key }) {
  const { count } = await workerd.ask("get", { policy, key, of: policy[0] });
  return policy[0] === "bucket" ? limit - count : count;
}

/** All that was acknowledged is there, and besides only what was under way at the kills. */
async function check(workerd, own) {
  own.lost += own.asked ?? 0;
  if (own.asked) own.orphans = (own.orphans ?? 0) + 1;
  own.asked = 0;
  if (own.closing) {
    const { used, ...reservation } = own.closing;
    assert.match(await close(workerd.ask, own, reservation, used), /^(settled|closed)$/);
  }
  const open = own.open.reduce((sum, { cost }) => sum + cost, 0);
  const count = await counted(workerd, own);
  const words = `${own.key}: ${count} counted, ${own.charged} charged, ${open} open, ${own.lost} lost`;
  assert.ok(count >= own.charged + open, words);
  assert.ok(count <= own.charged + open + own.lost, words);
  const slots = (await workerd.ask("get", { policy: own.policy, key: own.key, of: "running" })).count;
  assert.ok(
    slots >= own.open.length && slots <= own.open.length + (own.orphans ?? 0),
    `${slots} slots; ${words}`,
  );
}

test("killed under load 10 times, it has every reservation that it acknowledged, and admits no more", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-reservations-"));
  let workerd;
  try {
    await bundle(folder, { policies, timeout: "1m" });
    for (const [round, answers] of kills(rounds, [10, 200]).entries()) {
      workerd = await start(folder);
      for (const own of keys) await check(workerd, own);
      await killUnderLoad(
        workerd,
        answers,
        keys.map((own, number) => (ask) => load(ask, own, number + round)),
      );
    }
    workerd = await start(folder);
    let total = 0;
    for (const own of keys) {
      await check(workerd, own);
      for (const reservation of [...own.open])
        assert.equal(await close(workerd.ask, own, reservation, reservation.cost), "settled");
      const rest = limit - (await counted(workerd, own));
      const [policy] = own.policy;
      const item = { policy, key: own.key };
      assert.equal((await workerd.ask("reserve", { ...item, cost: rest + 1 })).allowed, false);
      const last = await workerd.ask("reserve", { ...item, cost: rest });
      assert.equal(last.allowed, true);
      assert.equal((await workerd.ask("hit", item)).allowed, false);
      assert.ok(own.charged + rest <= limit);
      total += own.charged;
    }
    context.diagnostic(`${total} charged, none lost`);
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
