// A workerd that is killed under load, and deployed with other policies, forgets no exception, and each ends when it says.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { bundle, kills, killUnderLoad, start } from "./workerd.mjs";

const rounds = 8;
const connections = 6;
const limit = 40;

/** So long that no window ends while the test runs. */
const once = (limit) => ({ algorithm: "fix_window_per_key", limit, scale: "365d" });

/** Deployed in turn: a ban beside it that comes and goes, another limit, and another scale, which is another shape. */
const deployments = [
  { once: once(limit) },
  { once: once(limit), ban: { algorithm: "ban", after: 1_000, scale: "1d", for: "1d" } },
  { once: once(limit / 2) },
  { once: { ...once(limit), scale: "300d" } },
];

const year = 365 * 86_400_000;
const until = Date.now() + year;

/** Keys with what is set of each: its exception is replaced, lifted and set again. */
const keys = {
  office: { allow: true },
  stolen: { deny: true },
  customer: { once: { limit: 10 * limit } },
  trial: { once: { limit: 3 } },
};

/** What the operator has asked for of each key and knows to be done, and what may or may not be. */
const known = Object.fromEntries(Object.keys(keys).map((key) => [key, { done: null, asked: null }]));

async function except(ask, policy, key, exception) {
  known[key].asked = exception;
  await ask("except", { policy, key, exception, ...(exception === null ? {} : { until }) });
  known[key].done = exception;
}

/** Hits all keys. One connection is the operator's, who also changes counts. */
function load(ask, policy, number, counts) {
  return (async () => {
    for (let turn = 0; ; turn += 1) {
      for (const key of Object.keys(keys)) {
        const { allowed } = await ask("hit", { policy, key });
        if (allowed) counts[key] += 1;
      }
      if (number > 0) continue;
      const key = Object.keys(keys)[turn % 4];
      await except(ask, policy, key, (turn >> 2) % 3 === 2 ? null : keys[key]);
      if (turn % 5 === 0) await ask("reset", { policy, key: "customer" });
      if (turn % 7 === 0) await ask("set", { policy, key: "trial", count: 1, of: "once" });
    }
  })();
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** An exception that was acknowledged is there, or the one that was asked for when it was killed. */
async function check(workerd, policy, round) {
  for (const [key, { done, asked }] of Object.entries(known)) {
    const { exception, until: end } = await workerd.ask("exceptions", { policy, key });
    assert.ok(
      same(exception, done) || same(exception, asked),
      `${key}: ${JSON.stringify({ exception, done, asked })}, round ${round}`,
    );
    if (exception !== null) assert.equal(end, until);
    known[key] = { done: exception, asked: exception };
    const decision = await workerd.ask("peek", { policy, key, cost: 0 });
    if (exception?.deny) assert.equal(decision.reason, "denied", `round ${round}`);
    if (exception?.allow) assert.equal(decision.remaining, Number.MAX_SAFE_INTEGER);
    if (exception?.once) assert.equal(decision.limit, exception.once.limit);
  }
}

test("killed under load and deployed again, it keeps every exception that it acknowledged", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-exceptions-"));
  const counts = Object.fromEntries(Object.keys(keys).map((key) => [key, 0]));
  let workerd;
  try {
    for (const [round, answers] of kills(rounds, [40, 400]).entries()) {
      const policies = deployments[round % deployments.length];
      const policy = Object.keys(policies);
      await bundle(folder, { policies, timeout: "1m", credit: round % 2 === 1, leases: round % 3 === 2 });
      workerd = await start(folder);
      await check(workerd, policy, round);
      const operate = Array.from(
        { length: connections },
        (_, number) => (ask) => load(ask, policy, number, counts),
      );
      await killUnderLoad(workerd, answers, operate);
    }
    await bundle(folder, { policies: deployments[0], timeout: "1m" });
    workerd = await start(folder);
    await check(workerd, "once", rounds);
    // One that ends by itself does so also while nobody has the object in memory.
    const { until: ends } = await workerd.ask("except", {
      policy: "once",
      key: "short",
      exception: { deny: true },
      for: 1,
    });
    await workerd.kill();
    workerd = await start(folder);
    assert.ok(Date.now() >= ends);
    assert.equal((await workerd.ask("hit", { policy: "once", key: "short" })).allowed, true);
    assert.deepEqual(await workerd.ask("exceptions", { policy: "once", key: "short" }), { exception: null });
    context.diagnostic(
      Object.entries(counts)
        .map(([key, count]) => `${key}: ${count} allowed`)
        .join(", "),
    );
    // More than any of them without an exception.
    assert.ok(counts.office > 2 * limit && counts.customer > 2 * limit);
    assert.doesNotMatch(workerd.said(), /panic|unreachable/);
  } finally {
    await workerd?.kill();
    rmSync(folder, { recursive: true, force: true });
  }
});
