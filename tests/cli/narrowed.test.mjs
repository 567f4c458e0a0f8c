// `tollgate replay` counts the lines that `--where` and `--only` choose, and tells the story of one key.

import assert from "node:assert/strict";
import test from "node:test";
import { comparable, looped, sorted } from "./lib/loop.mjs";
import { replay, tollgate } from "./lib/tollgate.mjs";
import { logOf, traffic } from "./lib/traffic.mjs";

const policy = { algorithm: "sliding_window", limit: 20, scale: "1m" };
const hits = traffic();

test("100/1m is a sliding window, 100/day one of the calendar", async () => {
  const policyOf = async (text) =>
    (await replay(["--policy", text], { input: logOf(hits) })).candidates[0].policies;
  assert.deepEqual(await policyOf("20/1m"), policy);
  assert.deepEqual(await policyOf("20/m"), policy);
  assert.deepEqual(await policyOf("7/day"), { algorithm: "fix_window", limit: 7, scale: "day" });
});

const conditions = [
  ["path == /items/1", ({ path }) => path === "/items/1"],
  ["path != '/items/1'", ({ path }) => path !== "/items/1"],
  ["path ^= /items/", () => true],
  ['path $= "/2"', ({ path }) => path.endsWith("/2")],
  ["path*=ems/3", ({ path }) => path.includes("ems/3")],
  ["bytes >= 3", ({ bytes }) => bytes >= 3],
  ["bytes<1", ({ bytes }) => bytes < 1],
  ["bytes > 1e0", ({ bytes }) => bytes > 1],
  ["bytes <= 2", ({ bytes }) => bytes <= 2],
  ["user == user 3", ({ user }) => user === "user 3"],
  ["user != user 3", ({ user }) => user !== "user 3"],
  ["ip ^= 192.0.2.1", ({ ip }) => ip.startsWith("192.0.2.1")],
];

for (const [condition, meets] of conditions)
  test(`--where ${condition}`, async () => {
    const chosen = hits.filter(meets);
    assert.ok(chosen.length > 0);
    // The combined format calls the bytes size.
    for (const format of condition.startsWith("bytes") ? ["json", "csv"] : ["combined", "json", "csv"]) {
      const args = ["--policy", JSON.stringify(policy), "--where", condition, "--worst", "99"];
      const { candidates, filtered, lines } = await replay(args, { input: logOf(hits, format) });
      assert.deepEqual(sorted(comparable(candidates[0])), sorted(looped(chosen, policy)), format);
      assert.deepEqual([filtered, lines], [hits.length - chosen.length, hits.length]);
    }
  });

test("several conditions must all be met, and the report says how many lines are left out", async () => {
  const args = ["--policy", "20/1m", "--where", "path == /items/1", "--where", "bytes > 2"];
  const chosen = hits.filter(({ path, bytes }) => path === "/items/1" && bytes > 2);
  const { stdout } = await tollgate(["replay", ...args], { input: logOf(hits, "json") });
  assert.match(stdout, new RegExp(`^${(hits.length - chosen.length).toLocaleString("en")} left out by`, "m"));
  assert.match(stdout, new RegExp(`^ +hits +${chosen.length.toLocaleString("en")}$`, "m"));
});

test("only the lines of one key, with their story", async () => {
  const ip = "192.0.2.0";
  const chosen = hits.filter((hit) => hit.ip === ip);
  const args = ["--policy", "20/1m", "--only", `key=${ip}`];
  const { candidates, filtered } = await replay(args, { input: logOf(hits) });
  const [{ story, ...summary }] = candidates;
  assert.equal(filtered, hits.length - chosen.length);
  assert.deepEqual(comparable(summary), looped(chosen, policy));
  const { chapters } = story;
  const sum = (allowed) =>
    chapters.reduce((sum, each) => sum + (each.allowed === allowed ? each.hits : 0), 0);
  assert.deepEqual([sum(true), sum(false)], [summary.allowed, summary.denied]);
  assert.ok(sum(false) > 0);
  for (const [at, chapter] of chapters.entries()) {
    assert.ok(chapter.from <= chapter.to);
    assert.equal(chapter.remaining === 0 || chapter.allowed, true);
    assert.equal(chapter.longestWait > 0, !chapter.allowed);
    if (at === 0) continue;
    assert.notEqual(chapter.allowed, chapters[at - 1].allowed);
    assert.ok(chapters[at - 1].to <= chapter.from);
  }
  assert.equal(chapters[0].from, chosen[0].time);
  const { stdout } = await tollgate(["replay", ...args], { input: logOf(hits) });
  assert.match(stdout, /^ +from +to +hits +result +remaining +longest wait$/m);
  assert.doesNotMatch(stdout, /denied most/);
});

test("a story has a bound, and says what it leaves out", async () => {
  const log = Array.from({ length: 5_000 }, (_, at) => ({
    time: Date.UTC(2026, 9, 10) + 1_000 * Math.floor(at / 2),
    ip: "192.0.2.1",
    path: "/",
    bytes: 0,
  }));
  const args = ["--policy", "1/1s", "--only", "key=192.0.2.1"];
  const [{ story }] = (await replay(args, { input: logOf(log, "json") })).candidates;
  assert.deepEqual([story.chapters.length, story.more], [1_000, 4_000]);
  const { stdout } = await tollgate(["replay", ...args], { input: logOf(log, "json") });
  assert.match(stdout, /And 4,960 changes more\./);
});

test("if no line is left, the command says which option left none", async () => {
  for (const [args, said] of [
    [["--where", "path == /nothing"], /^tollgate replay: no line is left by --where "path == \/nothing"\n$/],
    [["--only", "key=192.0.2.99"], /^tollgate replay: no line is left by --only key=192\.0\.2\.99\n$/],
    [["--where", "colour == red"], /no line has the field "colour"; the fields are /],
  ]) {
    const { code, stdout, stderr } = await tollgate(["replay", "--policy", "20/1m", ...args], {
      input: logOf(hits, "json"),
    });
    assert.match(stderr, said);
    assert.deepEqual([code, stdout], [1, ""]);
  }
});
