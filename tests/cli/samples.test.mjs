// `tollgate replay` tells who was denied: paths, agents and users of each key's denied hits; and when, by hours on the axis.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { folderWith, replay, tollgate } from "./lib/tollgate.mjs";
import { commonTime } from "./lib/traffic.mjs";

const start = Date.UTC(2026, 9, 10, 8, 0);
const minute = 60_000;
const policy = '{"algorithm":"fix_window","limit":2,"scale":"1d"}';

/** Hits of two keys, of which one is a script: its first two are allowed. */
const hits = [
  ...Array.from({ length: 12 }, (_, at) => ({
    time: start + at * 50 * minute,
    ip: "203.0.113.9",
    user: at % 3 === 0 ? "bot" : undefined,
    path: at < 2 ? "/allowed" : at % 5 === 0 ? "/api" : "/login",
    agent: "python-requests/2.31",
  })),
  ...Array.from({ length: 5 }, (_, at) => ({
    time: start + at * 90 * minute,
    ip: "192.0.2.1",
    path: `/page/${at}`,
    agent: `Firefox/${at}`,
  })),
].sort((one, other) => one.time - other.time);

const formats = {
  combined: ({ time, ip, user = "-", path, agent }) =>
    `${ip} - ${user} [${commonTime(time)}] "GET ${path}?q=1 HTTP/1.1" 200 1 "-" "${agent}"`,
  json: ({ time, ...hit }) => JSON.stringify({ ts: time, ...hit }),
  csv: ({ time, ip, user = "", path, agent }) => `${time},${ip},${user},${path},${agent}`,
};
const heads = { csv: "time,ip,user,path,agent\n" };
const logOf = (format, lines = hits) =>
  `${heads[format] ?? ""}${lines.map((hit) => `${formats[format](hit)}\n`).join("")}`;

/** What the summary should say, by a plain count over the denied hits. */
function expected(ip) {
  const denied = hits.filter((hit) => hit.ip === ip).slice(2);
  const sample = (field) => {
    const times = new Map();
    for (const hit of denied)
      if (hit[field] !== undefined) times.set(hit[field], (times.get(hit[field]) ?? 0) + 1);
    if (times.size === 0) return {};
    const most = [...times].sort(([, one], [, other]) => other - one).slice(0, 3);
    return {
      [`${field}s`]: { most: most.map(([text, times]) => ({ text, times })), different: times.size },
    };
  };
  return { lines: denied.length, ...sample("path"), ...sample("agent"), ...sample("user") };
}

for (const format of Object.keys(formats))
  test(`${format}: the denied lines of each key, and no allowed ones`, async () => {
    const { candidates } = await replay(["--policy", policy], { input: logOf(format) });
    assert.deepEqual(
      candidates[0].worst.map(({ key, samples }) => [key, samples]),
      ["203.0.113.9", "192.0.2.1"].map((ip) => [ip, expected(ip)]),
    );
  });

test("lines out of order, of several logs and of many pieces, keep their own details", async (t) => {
  const many = Array.from({ length: 40_000 }, (_, at) => ({
    time: start + at * 100,
    ip: `10.0.${at % 7}.1`,
    path: `/of-${at % 7}/${"x".repeat(60)}`,
    agent: `agent-${at % 7} é漢😀`,
  }));
  const shuffled = many.map((hit, at) => many[at ^ 5] ?? hit);
  const at = folderWith(t, {
    one: logOf("combined", shuffled.slice(0, 20_000)),
    other: logOf("json", shuffled.slice(20_000)),
  });
  for (const files of [[at("one"), at("other")], [at("one")]]) {
    const { candidates } = await replay(["--policy", policy, "--sort-window", "1000", ...files]);
    assert.equal(candidates[0].worst.length, 7);
    for (const { key, samples } of candidates[0].worst) {
      const [, , number] = key.split(".");
      assert.deepEqual(
        [samples.lines, samples.paths.different, samples.paths.most[0].text, samples.agents.most[0].text],
        [1_000, 1, `/of-${number}/${"x".repeat(60)}`, `agent-${number} é漢😀`],
      );
    }
  }
});

test("rules of a gateway are sampled too", async (t) => {
  const at = folderWith(t, {
    "wrangler.toml": `[vars.TOLLGATE]\nupstream = "ORIGIN"\n[vars.TOLLGATE.policies]\nday = { algorithm = "fix_window", limit = 2, scale = "1d" }\n[[vars.TOLLGATE.rules]]\npath = "/*"\npolicies = ["day"]\n`,
  });
  const { candidates } = await replay(["--config", at("wrangler.toml")], { input: logOf("combined") });
  assert.deepEqual(
    candidates[0].worst.map(({ samples }) => samples),
    ["203.0.113.9", "192.0.2.1"].map(expected),
  );
});

test("the texts of a key are bounded", async () => {
  const lines = Array.from({ length: 3_000 }, (_, at) => ({
    time: start + at,
    ip: "192.0.2.1",
    path: `/${at}`,
    agent: "a",
  }));
  const { candidates } = await replay(["--policy", policy], { input: logOf("json", lines) });
  const [{ samples }] = candidates[0].worst;
  assert.deepEqual([samples.lines, samples.paths.different, samples.paths.isMore], [1_000, 50, true]);
});

test("people or scripts: the terminal and the report say it", async (t) => {
  const at = folderWith(t, {});
  const { stdout } = await tollgate(["replay", "--policy", policy, "--html", at("report.html")], {
    input: logOf("combined"),
  });
  assert.match(
    stdout,
    /denied of 203\.0\.113\.9\n {4}paths {3}\/login 80\.0 %, \/api 20\.0 %\n {4}agents {2}python-requests\/2\.31 100\.0 %\n {4}users {3}bot 30\.0 %\n/,
  );
  assert.match(stdout, /agents {2}Firefox\/2 33\.3 %, Firefox\/3 33\.3 %, Firefox\/4 33\.3 %\n/);
  const html = readFileSync(at("report.html"), "utf8");
  assert.match(html, /<dt>agents<\/dt><dd>python-requests\/2\.31 100\.0 %<\/dd>/);
  assert.match(html, /<text x="0\.00%" y="15">08:00<\/text>/);
});

test("the axis has whole hours or days of UTC, at their places", async () => {
  const axisOf = async (length, count) => {
    const lines = Array.from({ length: count }, (_, at) => ({
      time: start + (at * length) / count,
      ip: "192.0.2.1",
      path: "/",
      agent: "a",
    }));
    const { stdout } = await tollgate(["replay", "--policy", policy], { input: logOf("json", lines) });
    const [, bars] = stdout.match(/^ {2}allowed {2}(.*)$/m) ?? [];
    const [, axis] = stdout.match(/^ {11}(╵.*|\s+╵.*)$/m) ?? [];
    return { width: bars.length, axis };
  };
  const day = await axisOf(24 * 60 * minute, 1_440);
  assert.match(day.axis, /╵08:00 +╵12:00 +╵16:00 +╵20:00 +╵10-11 +╵04:00/);
  // Each mark stands where its time is.
  const step = (24 * 60) / 48;
  assert.equal(day.axis.indexOf("╵12:00"), Math.floor((4 * 60) / step));
  const short = await axisOf(10 * minute, 600);
  assert.match(short.axis, /╵08:00 +╵08:05|╵08:00 +╵08:0[1-5]/);
  const weeks = await axisOf(30 * 24 * 60 * minute, 3_000);
  assert.match(weeks.axis, /╵10-1\d +╵10-\d\d/);
});
