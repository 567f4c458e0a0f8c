// Throttles of several processes over one Redis wait together: never more than the policy admits, in order, without polling.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startFleet } from "./lib/fleet.mjs";
import { withServer } from "./lib/setting.mjs";

const processes = 4;
let fleet;
const setting = withServer({
  start: async ({ server }) => {
    fleet = await startFleet(server.port, processes);
  },
  stop: () => fleet.stop(),
});

/** Redis's own time, in milliseconds. */
async function time() {
  const [seconds, microseconds] = await setting.redis.time();
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
}

for (const [name, policies, perSecond, atOnce] of [
  ["token_bucket", { algorithm: "token_bucket", capacity: 20, refillRate: 100 }, 100, 20],
  ["leaky_bucket", { algorithm: "leaky_bucket", capacity: 5, leakRate: 200 }, 200, 5],
  [
    "several policies",
    [
      { algorithm: "token_bucket", capacity: 10, refillRate: 100 },
      { algorithm: "sliding_window", limit: 500, scale: "1h" },
    ],
    100,
    10,
  ],
])
  test(`four processes, clocks minutes off: ${name}`, async () => {
    const each = 25;
    const began = await time();
    const { prefix } = setting.options();
    const reports = await fleet.run({ work: "waits", policies, prefix, hits: each, inFlight: each });
    const passed = (await time()) - began;
    const total = processes * each;
    for (const { order } of reports) assert.deepEqual(order, [...Array(each).keys()]);
    // The buckets let so many through at once, and the rest took at least so long by Redis's own clock.
    assert.ok(passed >= ((total - atOnce) / perSecond) * 1_000 - 2, `${passed} ms`);
    // A process is denied before its turn and again when another was sooner: at most once for each call of all.
    for (const { asked } of reports) assert.ok(asked <= each + total + processes, `${asked} hits`);
    const places = reports.flatMap(({ places }) => places);
    assert.ok(places.every(({ position }) => position >= 1 && position <= each));
    const waits = places.map(({ wait }) => wait).filter((wait) => wait !== undefined);
    assert.ok(waits.length > 0 && waits.every((wait) => wait >= 0 && wait < 60_000), "waits are expected");
  });

test("four processes never run more at once than the limiter allows", async () => {
  const { prefix } = setting.options();
  const policies = { algorithm: "concurrency", limit: 3 };
  const reports = await fleet.run({ work: "runs", policies, prefix, hits: 4, inFlight: 4 });
  assert.ok(Math.max(...reports.map(({ most }) => most)) <= 3);
  assert.deepEqual(
    reports.map(({ ran }) => ran),
    Array(processes).fill(4),
  );
});
