// A policy whose scale changes back and forth, as in a gradual deploy or a rollback, mints no quota.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter, step } from "tollgate";

const start = 1_767_225_600_000;
const algorithms = ["fix_window", "fix_window_per_key", "sliding_window", "sliding_counter"];
const policyOf = (algorithm, scale) => ({ algorithm, limit: 5, scale, denied: "free", name: "api" });

for (const algorithm of algorithms) {
  test(`${algorithm}: states stored under an hour and a minute in turn admit five an hour`, () => {
    let state = null;
    let admitted = 0;
    for (let hit = 0; hit < 3_000; hit++) {
      const scale = hit % 2 === 0 ? "1h" : "1m";
      const result = step(policyOf(algorithm, scale), state, "hit", 1, start + 1_000 * hit);
      state = JSON.parse(JSON.stringify(result.state));
      if (result.decision.allowed) admitted += 1;
      // The hour's own quota counts what either let through.
      if (scale === "1h" && result.decision.allowed) assert.ok(admitted <= 5, `${admitted} after ${hit} s`);
    }
  });

  test(`${algorithm}: a deploy with a second between two with a day admits five a day, by snapshots`, () => {
    let now = start;
    const clock = () => now;
    let limiter = new RateLimiter(policyOf(algorithm, "1d"), { clock });
    const hits = () => Array.from({ length: 9 }, () => limiter.hit("key").allowed).filter(Boolean).length;
    const deploy = (scale) => {
      const snapshot = JSON.parse(JSON.stringify(limiter.snapshot()));
      limiter = RateLimiter.restore(snapshot, { clock, policies: policyOf(algorithm, scale) });
    };
    assert.equal(hits(), 5);
    deploy("1s");
    now += 10_000;
    limiter.clean();
    deploy("1d");
    assert.equal(hits(), 0);
    now += 2 * 86_400_000;
    assert.equal(hits(), 5);
  });
}
