// `tollgate replay --suggest` finds the smallest limit under which enough keys are never denied.

import assert from "node:assert/strict";
import test from "node:test";
import { looped } from "./lib/loop.mjs";
import { replay, tollgate } from "./lib/tollgate.mjs";
import { logOf, traffic } from "./lib/traffic.mjs";

const json = JSON.stringify;

/** The smallest limit by trying one after the other. */
function tried(hits, policyOf, percent, options) {
  for (let limit = 1; ; limit += 1) {
    const { keys, keysDenied } = looped(hits, policyOf(limit), options);
    if ((keys - keysDenied) / keys >= percent / 100) return { limit, keysDenied };
  }
}

const algorithms = [
  (limit) => ({ algorithm: "fix_window", limit, scale: "1m" }),
  (limit) => ({ algorithm: "fix_window_per_key", limit, scale: "1m" }),
  (limit) => ({ algorithm: "sliding_window", limit, scale: "1m" }),
  (limit) => ({ algorithm: "sliding_counter", limit, scale: "1m" }),
  (limit) => ({ algorithm: "token_bucket", capacity: limit, refillRate: 1, per: "7s" }),
  (limit) => ({ algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: "1d" }),
];

test("the limit is the smallest under which so many keys are never denied, for every algorithm", async () => {
  const hits = traffic({ clients: 40 });
  for (const percent of [50, 90, 99.9]) {
    const args = algorithms.flatMap((policyOf) => ["--policy", json(policyOf(3))]);
    const input = logOf(hits);
    const { suggestions, candidates } = await replay([...args, "--suggest", String(percent)], { input });
    assert.equal(candidates.length, algorithms.length);
    for (const [at, policyOf] of algorithms.entries()) {
      const { limit, keysDenied, policy, keys } = suggestions[at];
      assert.deepEqual({ limit, keysDenied }, tried(hits, policyOf, percent), policy.algorithm);
      assert.deepEqual(policy, policyOf(limit));
      assert.equal(keys, 40);
    }
  }
});

test("a bucket without a rate gets the smallest one for its capacity", async () => {
  const hits = traffic({ clients: 40 });
  const buckets = [
    [(refillRate) => ({ algorithm: "token_bucket", capacity: 5, refillRate, per: "1m" }), "refillRate"],
    [(leakRate) => ({ algorithm: "leaky_bucket", capacity: 4, leakRate, per: "1h" }), "leakRate"],
  ];
  for (const [policyOf, field] of buckets)
    for (const percent of [50, 97.5, 100]) {
      const { [field]: _, ...given } = policyOf(1);
      const args = ["--policy", json(given), "--suggest", String(percent)];
      const { suggestions, candidates } = await replay(args, { input: logOf(hits) });
      assert.deepEqual(candidates, []);
      const [{ limit, keysDenied, policy, keys, others }] = suggestions;
      assert.equal(keys, 40);
      assert.deepEqual(policy, policyOf(limit));
      const share = (rate) => {
        const told = looped(hits, policyOf(rate));
        return (told.keys - told.keysDenied) / told.keys;
      };
      assert.ok(share(limit) >= percent / 100 && (limit === 1 || share(limit - 1) < percent / 100));
      assert.equal(keysDenied, looped(hits, policyOf(limit)).keysDenied);
      assert.ok(others.every(({ limit }, at) => at === 0 || limit >= others[at - 1].limit));
    }
});

test("a rate for hits that never fit is none", async () => {
  const args = [
    "--policy",
    '{"algorithm":"token_bucket","capacity":2}',
    "--cost",
    "bytes",
    "--suggest",
    "100",
  ];
  const { stdout, code } = await tollgate(["replay", ...args], { input: logOf(traffic(), "json") });
  assert.equal(code, 0);
  assert.match(stdout, /^token_bucket, 2 at once, … per 1s +none /m);
});

test("costs count, and a policy without a limit is only suggested one", async () => {
  const hits = traffic({ clients: 40 }).map((hit) => ({ ...hit, bytes: hit.bytes + 1 }));
  const policyOf = (limit) => ({ algorithm: "sliding_window", limit, scale: "1m" });
  const { suggestions, candidates } = await replay(
    ["--policy", '{"algorithm":"sliding_window","scale":"1m"}', "--suggest", "90", "--cost", "bytes"],
    { input: logOf(hits, "json") },
  );
  assert.deepEqual(candidates, []);
  const { limit } = tried(hits, policyOf, 90, { costOf: ({ bytes }) => bytes });
  assert.equal(suggestions[0].limit, limit);
});

test("without a policy it suggests limits for a second, a minute and an hour", async () => {
  const { stdout, code } = await tollgate(["replay", "--suggest", "99"], { input: logOf(traffic()) });
  assert.equal(code, 0);
  for (const scale of ["1s", "1m", "1h"])
    assert.match(stdout, new RegExp(`^sliding_window, … in ${scale} +\\d+ +\\d+ \\(`, "m"));
});
