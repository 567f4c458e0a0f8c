// Metrics stand beside those of another library in one text, and those of several processes are added up.

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { metrics, sumOfMetrics } from "tollgate/metrics";

test("in the older format a counter has its full name, and there is no end", (t) => {
  const counted = metrics();
  t.after(() => counted[Symbol.dispose]());
  const limiter = new RateLimiter({ algorithm: "fix_window", limit: 1, scale: "1m", name: "a counter" });
  limiter.hit("a");
  limiter.hit("a # EOF");
  const text = counted.prometheusText();
  assert.match(text, /^# TYPE tollgate_decisions_total counter$/m);
  assert.match(text, /^# HELP tollgate_decisions_total Decisions/m);
  assert.match(text, /^# TYPE tollgate_decision_duration_seconds histogram$/m);
  assert.match(text, /^tollgate_decisions_total\{policy="a counter",.*\} 2$/m);
  assert.doesNotMatch(text, /^# (EOF|UNIT)/m);
  // Every sample belongs to the metric that was named before it, as the format requires.
  let name = "";
  for (const line of text.trim().split("\n")) {
    name = /^# TYPE (\S+)/.exec(line)?.[1] ?? name;
    assert.ok(line.startsWith("#") || line.startsWith(name), line);
  }
});

/** Returns the text of another process that hit a key so often. */
const textOf = (t, hits) =>
  new Promise((resolve, reject) => {
    const child = fork(new URL("./programs/counting.mjs", import.meta.url), [`${hits}`]);
    t.after(() => child.kill());
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`it ended with ${code}`)));
  });

test("the sum of processes has each metric once, and the sum of equal series", {
  timeout: 120_000,
}, async (t) => {
  const texts = await Promise.all([textOf(t, 3), textOf(t, 5)]);
  const sum = sumOfMetrics(texts);
  const value = (series) =>
    Number(
      sum
        .split("\n")
        .find((line) => line.startsWith(`${series} `))
        ?.split(" ")
        .at(-1),
    );
  const labels = (result) =>
    `{policy="a b",limiter="memory",operation="hit",result="${result}",by="limiter"}`;
  assert.equal(value(`tollgate_decisions_total${labels("allowed")}`), 2);
  assert.equal(value(`tollgate_decisions_total${labels("denied")}`), 6);
  assert.equal(value('tollgate_decision_duration_seconds_count{limiter="memory"}'), 8);
  assert.equal(value('tollgate_top_denied{key="a key"}'), 6);
  const types = [...sum.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  assert.equal(types.length, new Set(types).size);
  assert.ok(sum.endsWith("\n# EOF\n"));
  assert.deepEqual([sumOfMetrics([texts[0]]), sumOfMetrics([])], [texts[0], "# EOF\n"]);
  assert.equal(sumOfMetrics(["", texts[0]]), texts[0]);
});
