// A workerd that is killed under load has counted every acknowledged denial toward a ban, and shortens and forgets no ban.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, kills, killUnderLoad, start } from "./workerd.mjs";

const rounds = 12;
const connections = 8;
const after = 60;

/** So long that no window and no ban ends while the test runs. */
const policies = {
  once: { algorithm: "fix_window_per_key", limit: 1, scale: "365d" },
  ban: { algorithm: "ban", after, scale: "365d", for: "400d" },
};
const policy = Object.keys(policies);

/** A key of each connection's own, and one that all of them hit. */
const keyOf = (key, inFlight) => ({ key, inFlight, denied: 0, isBanned: false, ends: undefined });
const own = Array.from({ length: connections }, (_, number) => keyOf(`own:${number}`, 1));
const shared = keyOf("shared", connections);

async function load(ask, number) {
  const hit = async (key) => {
    const { allowed, reason } = await ask("hit", { policy, key: key.key });
    if (reason === "banned") key.isBanned = true;
    else if (!allowed) key.denied += 1;
  };
  for (;;) {
    await hit(own[number]);
    await hit(shared);
  }
}

/** Every acknowledged denial counts, besides only what was under way at the kills; a ban that was told holds to its end. */
async function check(workerd, round) {
  for (const key of [...own, shared]) {
    const item = { policy, key: key.key };
    const { reason } = await workerd.ask("peek", item);
    const { count } = await workerd.ask("get", { ...item, of: "ban" });
    const { expiresAt } = await workerd.ask("expires_at", { ...item, of: "ban" });
    const words = `${key.key}: ${count} counted, ${key.denied} acknowledged, round ${round}`;
    const isHeld = reason === "banned" && count === 0;
    if (key.isBanned) assert.ok(isHeld, `the ban of ${key.key} was forgotten in round ${round}`);
    if (isHeld) {
      // It began no earlier than its denials, of which some may not have been acknowledged.
      assert.ok(key.denied + key.inFlight * round >= after - 1, words);
      key.ends ??= expiresAt;
      assert.equal(expiresAt, key.ends, "the end of a ban does not move");
      continue;
    }
    assert.ok(count >= key.denied, words);
    assert.ok(count <= key.denied + key.inFlight * round, words);
  }
}

test("killed under load, it keeps its bans and what leads to them", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-bans-"));
  let workerd;
  try {
    await bundle(folder, { policies, timeout: "1m" });
    for (const [round, answers] of kills(rounds, [20, 200]).entries()) {
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
    context.diagnostic(`${[...own, shared].filter(({ isBanned }) => isBanned).length} keys were banned`);
    assert.ok(shared.isBanned);
    assert.deepEqual(await workerd.ask("unban", { policy, key: "shared" }), { unbanned: true });
    await workerd.kill();
    workerd = await start(folder);
    assert.equal((await workerd.ask("peek", { policy, key: "shared" })).reason, undefined);
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
