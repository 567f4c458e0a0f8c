// `tollgate replay --against` shows whom one of two policies denies and the other never does.

import assert from "node:assert/strict";
import test from "node:test";
import { looped } from "./lib/loop.mjs";
import { folderWith, replay, tollgate } from "./lib/tollgate.mjs";
import { logOf, traffic } from "./lib/traffic.mjs";

const hits = traffic({ hits: 4_000, clients: 40 });
const window = { algorithm: "sliding_window", limit: 6, scale: "1m" };
const bucket = { algorithm: "token_bucket", capacity: 2, refillRate: 20, per: "1m" };

/** The keys that the one denies and the other never does. */
function onlyDenied(one, other) {
  const others = new Set(looped(hits, other).worst.map(({ key }) => key));
  return looped(hits, one).worst.filter(({ key }) => !others.has(key));
}

const byKey = (list) => list.toSorted((one, other) => (one.key < other.key ? -1 : 1));

test("both sides, by a plain loop over both policies", async () => {
  const args = ["--policy", JSON.stringify(window), "--against", JSON.stringify(bucket), "--worst", "99"];
  const { difference, candidates } = await replay(args, { input: logOf(hits) });
  assert.equal(candidates.length, 2);
  const [first, second] = [onlyDenied(window, bucket), onlyDenied(bucket, window)];
  assert.ok(first.length > 0 && second.length > 0, "both policies deny somebody alone");
  for (const [side, expected] of [
    [difference.first, first],
    [difference.second, second],
  ]) {
    assert.deepEqual(
      byKey(side.worst),
      byKey(expected.map(({ key, hits, denied }) => ({ key, hits, denied }))),
    );
    assert.equal(side.keys, expected.length);
    assert.equal(
      side.denied,
      expected.reduce((sum, { denied }) => sum + denied, 0),
    );
  }
  assert.equal(difference.both, looped(hits, window).keysDenied - first.length);
  assert.deepEqual(
    [difference.first.by, difference.second.by],
    candidates.map(({ name }) => name),
  );
});

test("in words, and in the report", async (t) => {
  const at = folderWith(t, {});
  const args = ["replay", "--policy", "9/1m", "--against", "9000/1m", "--html", at("report.html")];
  const { stdout, code } = await tollgate(args, { input: logOf(hits) });
  assert.equal(code, 0);
  assert.match(stdout, /^Whom only one of them denies$/m);
  assert.match(stdout, /\d+ keys denied only by sliding_window, 9 in 1m, [\d,]+ hits of theirs\./);
  assert.match(stdout, /No key is denied only by sliding_window, 9,000 in 1m\./);
  assert.match(stdout, /^ +0 keys denied by both\.$/m);
});
