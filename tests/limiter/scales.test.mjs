// Of a policy whose scale changes back and forth, as in a gradual deploy or a rollback, each scale has its own quota.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter, step } from "tollgate";

const start = 1_767_225_600_000;
const algorithms = ["fix_window", "fix_window_per_key", "sliding_window", "sliding_counter"];
const policyOf = (algorithm, scale) => ({ algorithm, limit: 5, scale, denied: "free", name: "api" });

for (const algorithm of algorithms) {
  test(`${algorithm}: states stored under an hour and a minute in turn admit five of each`, () => {
    let state = null;
    const counts = new Map();
    for (let hit = 0; hit < 3_000; hit++) {
      const scale = hit % 2 === 0 ? "1h" : "1m";
      const result = step(policyOf(algorithm, scale), state, "hit", 1, start + 1_000 * hit);
      state = JSON.parse(JSON.stringify(result.state));
      if (!result.decision.allowed) continue;
      const window = `${scale} ${Math.floor((1_000 * hit) / (scale === "1h" ? 3_600_000 : 60_000))}`;
      counts.set(window, (counts.get(window) ?? 0) + 1);
      assert.ok(counts.get(window) <= 5, `${counts.get(window)} in ${window}`);
    }
    assert.equal(counts.get("1h 0"), 5);
    assert.ok(counts.size > 10);
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
