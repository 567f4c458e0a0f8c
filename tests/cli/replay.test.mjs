// `tollgate replay` decides as a loop over `RateLimiter` does, whatever the format and order of the log.

import assert from "node:assert/strict";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { RateLimiter } from "tollgate";
import { inProject } from "../../scripts/lib/paths.mjs";
import { comparable, looped, sorted } from "./lib/loop.mjs";
import { folderWith, replay, tollgate } from "./lib/tollgate.mjs";
import { formats, logOf, traffic } from "./lib/traffic.mjs";

const all = ["--worst", "1000"];
const json = JSON.stringify;

const policies = [
  { algorithm: "fix_window", limit: 4, scale: "1m" },
  { algorithm: "fix_window_per_key", limit: 4, scale: "1m" },
  { algorithm: "sliding_window", limit: 4, scale: "1m" },
  { algorithm: "sliding_window", limit: 4, scale: "1m", denied: "free" },
  { algorithm: "sliding_counter", limit: 4, scale: "1m" },
  { algorithm: "token_bucket", capacity: 4, refillRate: 1, per: "20s" },
  { algorithm: "leaky_bucket", capacity: 4, leakRate: 1, per: "20s" },
];
const given = (list) => list.flatMap((policy) => ["--policy", json(policy)]);

/** Fails unless a summary's candidate did what a loop over a limiter does. */
function agrees(candidate, hits, policy, options) {
  const expected = looped(hits, policy, options);
  assert.ok(expected.denied > 0 && expected.allowed > 0, "a comparison that proves nothing");
  assert.deepEqual(sorted(comparable(candidate)), sorted(expected));
}

test("every algorithm decides as in a plain loop over RateLimiter, side by side", async () => {
  const hits = traffic();
  const { candidates, lines, from, to } = await replay([...given(policies), ...all], { input: logOf(hits) });
  assert.equal(lines, hits.length);
  assert.deepEqual([from, to], [hits[0].time, hits.at(-1).time]);
  for (const [at, policy] of policies.entries()) agrees(candidates[at], hits, policy);
});

test("a ban says who would have been banned", async () => {
  const hits = traffic();
  const list = [policies[0], { algorithm: "ban", after: 3, scale: "1m", for: "2m" }];
  const { candidates } = await replay(["--policy", json(list), ...all], { input: logOf(hits) });
  let now = 0;
  const limiter = new RateLimiter(list, { clock: () => now });
  const banned = new Map();
  for (const { time, ip } of hits) {
    now = time;
    if (limiter.hit(ip).reason === "banned") banned.set(ip, (banned.get(ip) ?? 0) + 1);
  }
  assert.ok(banned.size > 0, "a comparison that proves nothing");
  const [{ keysBanned, worst }] = candidates;
  assert.equal(keysBanned, banned.size);
  for (const { key, banned: found } of worst) assert.equal(found, banned.get(key), key);
  const { stdout } = await tollgate(["replay", "--policy", json(list)], { input: logOf(hits) });
  assert.match(stdout, /fix_window, 4 in 1m \+ ban, 2m after 3 denials in 1m/);
  assert.match(stdout, /keys ever banned/);
  assert.match(stdout, /by a ban/);
  const without = await replay([...given(policies.slice(0, 1))], { input: logOf(hits) });
  assert.equal(Object.hasOwn(without.candidates[0], "keysBanned"), false);
});

test("a list of policies is one decision", async () => {
  const hits = traffic();
  const list = [
    { ...policies[0], name: "short" },
    { algorithm: "fix_window", limit: 30, scale: "1h" },
  ];
  const { candidates } = await replay(["--policy", json(list), ...all], { input: logOf(hits) });
  assert.equal(candidates.length, 1);
  agrees(candidates[0], hits, list);
});

test("every format is read, gzipped or not", async (t) => {
  const hits = traffic();
  for (const format of Object.keys(formats)) {
    const log = logOf(hits, format);
    const at = folderWith(t, { log, packed: gzipSync(log), crlf: log.replaceAll("\n", "\r\n") });
    for (const name of ["log", "packed", "crlf"]) {
      const { candidates, unreadable } = await replay([at(name), ...given([policies[2]]), ...all]);
      assert.equal(unreadable.count, 0, format);
      agrees(candidates[0], hits, policies[2]);
    }
  }
});

test("rotated files and those of several servers are one log, in whatever order they are named", async (t) => {
  const hits = traffic({ hits: 3_000 });
  const thirds = [0, 1, 2].map((part) => hits.slice(part * 1_000, (part + 1) * 1_000));
  const rotated = folderWith(t, {
    "log.2.gz": gzipSync(logOf(thirds[0], "json")),
    "log.1": logOf(thirds[1]),
    log: logOf(thirds[2], "csv"),
  });
  const servers = [0, 1, 2].map((server) => hits.filter((_, at) => at % 3 === server));
  const parallel = folderWith(t, Object.fromEntries(servers.map((own, at) => [`server${at}`, logOf(own)])));
  // Hits of one second in several files have no order: policies that count them alike decide alike.
  const policy = policies[0];
  for (const files of [
    [rotated("log"), rotated("log.1"), rotated("log.2.gz")],
    [rotated("log.1"), rotated("log"), rotated("log.2.gz")],
    [0, 1, 2].map((server) => parallel(`server${server}`)),
  ]) {
    const { candidates, lines, late } = await replay([...files, ...given([policy]), ...all]);
    assert.deepEqual([lines, late], [3_000, 0]);
    agrees(candidates[0], hits, policy);
  }
});

test("lines out of order are sorted within a window; those beyond it count at the time of the line before", async () => {
  const hits = traffic({ hits: 500 });
  const shuffled = hits.map((hit, at) => [at + ((at * 7) % 20), hit]).sort(([one], [other]) => one - other);
  const input = logOf(shuffled.map(([, hit]) => hit));
  const args = [...given([policies[0]]), ...all];
  const inWindow = await replay([...args, "--sort-window", "40"], { input });
  assert.equal(inWindow.late, 0);
  agrees(inWindow.candidates[0], hits, policies[0]);

  const line = (second) => formats.common({ ...hits[0], time: hits[0].time + second * 1_000 });
  const late = [line(0), line(70), line(71), line(72), line(1), line(73)].map((text) => `${text}\n`).join("");
  const one = { algorithm: "fix_window_per_key", limit: 4, scale: "1m" };
  const { late: count, candidates } = await replay([...given([one]), "--sort-window", "1"], { input: late });
  assert.equal(count, 1);
  // Five hits within the second minute, the late one among them.
  assert.deepEqual([candidates[0].allowed, candidates[0].denied], [5, 1]);
});

test("the key is an address by its network, a field, or several", async () => {
  const hits = traffic();
  const input = logOf(hits);
  const args = [...given([policies[0]]), ...all];
  const of = async (...key) =>
    (await replay([...args, ...key.flatMap((name) => ["--key", name])], { input })).candidates[0];
  agrees(await of("path"), hits, policies[0], { keyOf: ({ path }) => path });
  agrees(await of("all"), hits, policies[0], { keyOf: () => "all" });
  agrees(await of("ip", "path"), hits, policies[0], { keyOf: ({ ip, path }) => `${ip} ${path}` });
  assert.deepEqual(await of("ip,path"), await of("ip", "path"));
  const users = hits.filter(({ user }) => user !== undefined);
  agrees(await of("user"), users, policies[0], { keyOf: ({ user }) => user });
  const { withoutKey } = await replay([...args, "--key", "user"], { input });
  assert.equal(withoutKey.count, hits.length - users.length);
  assert.equal(withoutKey.examples[0].reason, "it has no user");

  const addresses = ["2001:db8::1", "2001:DB8:0:0:1::2", "2001:db8:0:1::1", "::ffff:192.0.2.9", "192.0.2.9"];
  const mixed = addresses.map((ip, at) => ({ ...hits[0], time: hits[0].time + at, ip }));
  const { candidates } = await replay([...given([{ ...policies[0], limit: 1 }])], {
    input: logOf(mixed, "json"),
  });
  assert.deepEqual([candidates[0].keys, candidates[0].denied], [3, 2]);
});

test("two values with blanks are not one key", async () => {
  const line = (a, b) => `{"time":1791640536,"a":${json(a)},"b":${json(b)}}\n`;
  const input = line("x y", "z") + line("x", "y z");
  const { candidates } = await replay([...given([policies[0]]), "--key", "a,b"], { input });
  assert.equal(candidates[0].keys, 2);
});

test("values of CSV may be quoted, be empty, and hold separators", async () => {
  const input = [
    "time;user;path",
    '2026-10-10 13:55:36;"a ""b""; c";/x',
    '2026-10-10 13:55:36;"a ""b""; c";',
    '2026-10-10 13:55:36;"open;/x',
    '2026-10-10 13:55:36;"a"b;/x',
    "2026-10-10 13:55:36;a",
  ].join("\n");
  const { candidates, unreadable } = await replay(
    [...given([{ ...policies[0], limit: 1 }]), "--key", "user"],
    { input },
  );
  assert.deepEqual(
    candidates[0].worst.map(({ key, hits }) => [key, hits]),
    [['a "b"; c', 2]],
  );
  assert.deepEqual(
    unreadable.examples.map(({ line, reason }) => [line, reason]),
    [
      [4, "a quote is not closed"],
      [5, "a quote is not closed"],
      [6, "it has 2 values for 3 columns"],
    ],
  );
});

test("the cost of a line is that of a field", async () => {
  const hits = traffic();
  const policy = { algorithm: "token_bucket", capacity: 4, refillRate: 1, per: "5s" };
  const costOf = ({ bytes }) => bytes;
  const ofCombined = await replay([...given([policy]), ...all, "--cost", "size"], { input: logOf(hits) });
  agrees(ofCombined.candidates[0], hits, policy, { costOf });
  const ofJson = await replay([...given([policy]), ...all, "--cost", "bytes"], {
    input: logOf(hits, "json"),
  });
  agrees(ofJson.candidates[0], hits, policy, { costOf });
  const input = '{"time":1791640536,"ip":"192.0.2.1","bytes":9}\n';
  const never = await replay([...given([policy]), "--cost", "bytes"], { input });
  assert.deepEqual(never.candidates[0].worst, [{ key: "192.0.2.1", hits: 1, denied: 1, longestWait: null }]);
});

test("times have zones, units and names", async () => {
  const at = Date.UTC(2026, 9, 10, 13, 55, 36);
  const read = async (input, ...args) => {
    const command = ["replay", ...given([policies[0]]), "--key", "all", "--json", ...args];
    const { code, stdout, stderr } = await tollgate(command, { input });
    return code === 0 ? JSON.parse(stdout).from : /input:1: (.*)\n/.exec(stderr)[1];
  };
  for (const [time, expected] of [
    ["10/Oct/2026:15:55:36 +0200", at],
    ["2026-10-10T15:55:36.789+02:00", at + 789],
    ["2026-10-10 13:55:36,5Z", at + 500],
    ["2026-10-10T13:55:36", at],
    ["Sat, 10 Oct 2026 13:55:36 GMT", at],
    [at / 1_000, at],
    [at / 1_000 + 0.123, at + 123],
    [`${at / 1_000}.1239`, at + 123],
    [`${at + 1}000000`, at + 1],
    [at, at],
    [at * 1_000, at],
    [`${at}000000`, at],
    ["2026-13-10T13:55:36Z", 'when: "2026-13-10T13:55:36Z" is not a time'],
    ["yesterday", 'when: "yesterday" is not a time'],
  ])
    assert.equal(
      await read(json({ when: time }), "--time", "when", "--format", "json"),
      expected,
      String(time),
    );
  const local = json({ when: "2026-10-10 15:55:36" });
  assert.equal(await read(local, "--time", "when", "--zone", "+02:00"), at);
  assert.equal(await read(json({ time: 5 }), "--unit", "ms"), 5);
  assert.equal(await read("seconds;who\n5;a\n", "--time", "seconds"), 5_000);
});

test("a field that no line has is an error that lists the fields", async () => {
  const hits = traffic({ hits: 30 });
  const failed = async (format, ...args) => {
    const input = logOf(hits, format);
    const { code, stdout, stderr } = await tollgate(["replay", ...given([policies[0]]), ...args], { input });
    assert.deepEqual([code, stdout], [1, ""]);
    return stderr;
  };
  const csv = (name) =>
    `tollgate replay: no line has the field "${name}"; the fields are time, ip, user, path, bytes\n`;
  assert.equal(await failed("csv", "--key", "acount"), csv("acount"));
  assert.equal(await failed("csv", "--key", "ip,acount"), csv("acount"));
  assert.equal(await failed("csv", "--time", "tim"), csv("tim"));
  assert.equal(await failed("csv", "--cost", "byte"), csv("byte"));
  assert.match(
    await failed("json", "--key", "acount"),
    /no line has the field "acount"; the fields are ip, /,
  );
  assert.match(await failed("json", "--time", "tim"), /no line has the field "tim"; the fields are ip, /);
  assert.match(await failed("json", "--suggest", "9", "--key", "x"), /no line has the field "x"/);
  assert.match(
    await failed("combined", "--key", "acount"),
    /no line has the field "acount"; the fields are ip, host, ident, /,
  );
  const nobody = hits.map(({ user, ...hit }) => hit);
  const { code, stderr } = await tollgate(["replay", ...given([policies[0]]), "--key", "user"], {
    input: logOf(nobody),
  });
  assert.deepEqual([code, stderr], [1, 'tollgate replay: the field "user" is empty in every line\n']);

  const nested = '{"at":1791640536,"request":{"user":"a","ip":"192.0.2.1"}}\n';
  const args = ["replay", ...given([policies[0]]), "--time", "at", "--key", "request.usr"];
  assert.match(
    (await tollgate(args, { input: nested })).stderr,
    /no line has the field "request\.usr"; the fields are at, request\.user, request\.ip\n$/,
  );
});

test("a default field that no line has is an error that names the option", async () => {
  const input = '{"at":1791640536,"client":"a"}\n';
  const failed = async (...args) =>
    (await tollgate(["replay", ...given([policies[0]]), ...args], { input })).stderr;
  const fields = "the fields are at, client";
  assert.equal(
    await failed("--key", "client"),
    `tollgate replay: no line has the field "time"; ${fields}; use --time with the name of the field\n`,
  );
  assert.equal(
    await failed("--time", "at"),
    `tollgate replay: no line has the field "ip"; ${fields}; use --key with the name of a field\n`,
  );
});

test("a log of which no line can be read is an error with the first reason", async () => {
  const input = logOf(traffic({ hits: 3 }));
  for (const [args, reason] of [
    [["--format", "json"], "it is not JSON"],
    [["--cost", "path"], 'path: "/items/'],
  ]) {
    const { code, stdout, stderr } = await tollgate(["replay", ...given([policies[0]]), ...args], { input });
    assert.deepEqual([code, stdout], [1, ""]);
    assert.ok(stderr.startsWith(`tollgate replay: no line can be read; standard input:1: ${reason}`), stderr);
  }
});

test("an invalid policy in a file is named with the file", async (t) => {
  const wrong = { algorithm: "token_bucket", capcity: 5, refillRate: 1 };
  const at = folderWith(t, { "one.json": json(wrong), "two.json": json({ a: policies[0], b: wrong }) });
  for (const [file, where] of [
    ["one.json", "one.json"],
    ["two.json", "two.json: b"],
  ]) {
    const { code, stderr } = await tollgate(["replay", "--policy", file], { cwd: at(""), input: "" });
    assert.equal(code, 1);
    assert.ok(
      stderr.startsWith(`tollgate replay: ${where}: "capcity" is not a field of token_bucket`),
      stderr,
    );
  }
});

test("a field that some lines have is no error", async () => {
  const line = (fields) => `${json({ time: 1791640536, ...fields })}\n`;
  const input = `rubbish\n${line({ a: 1 })}${line({ b: 1 })}${line({ time: "soon", c: 1 })}`;
  const { withoutKey, unreadable } = await replay(
    [...given([policies[0]]), "--format", "json", "--key", "a,b"],
    { input },
  );
  assert.deepEqual([withoutKey.count, unreadable.count], [2, 2]);
});

test("lines that cannot be read are counted and shown, and do not end the replay", async (t) => {
  const hits = traffic({ hits: 30 });
  const lines = logOf(hits).split("\n");
  lines.splice(3, 0, "rubbish\x1b[31m", "");
  lines.splice(9, 0, '192.0.2.1 - - [10/Foo/2026:13:55:36 +0000] "GET /"');
  lines.splice(12, 0, 'localhost - - [10/Oct/2026:13:55:36 +0000] "GET /"');
  const at = folderWith(t, { log: lines.join("\n") });
  const summary = await replay([at("log"), ...given([policies[0]])]);
  assert.equal(summary.candidates[0].hits, 30);
  assert.equal(summary.lines, 33);
  const short = ({ line, reason }) => [line, reason];
  assert.deepEqual(summary.unreadable.examples.map(short), [
    [4, "it has no time in brackets"],
    [10, '"[10/Foo/2026:13:55:36 +0000]" is not a time'],
  ]);
  assert.deepEqual(summary.withoutKey.examples.map(short), [
    [13, '"localhost" is not an IP address; use --key host for names'],
  ]);
  const { stdout, code } = await tollgate(["replay", at("log"), ...given([policies[0]])]);
  assert.equal(code, 0);
  assert.match(
    stdout,
    /^2 lines that cannot be read\n {2}.*log:4: it has no time in brackets\n {4}rubbish\ufffd\[31m\n/m,
  );
});

test("a line without an end is not kept in memory: its start is read", async () => {
  const [first, last] = logOf(traffic({ hits: 2 })).split("\n");
  // An agent of 30 MB, in pieces, of which a thirtieth is kept.
  const pieces = Array.from({ length: 30 }, () => "x".repeat(1_000_000));
  const input = [`${first.slice(0, -1)}`, ...pieces, `"\nrubbish\n${last}\n`].join("");
  const { candidates, unreadable, lines } = await replay(given([policies[0]]), {
    input,
    node: ["--max-old-space-size=30"],
  });
  assert.deepEqual([lines, candidates[0].hits], [3, 2]);
  assert.deepEqual(
    unreadable.examples.map(({ line, text }) => [line, text]),
    [[2, "rubbish"]],
  );
  const isCut = await replay([...given([policies[0]]), "--key", "agent"], { input });
  const kept = isCut.candidates[0].keys;
  assert.equal(kept, 1, "an agent whose quote is cut off is none");
});

test("stored keys do not keep their lines in memory", async () => {
  // 30,000 keys, each in a line of 2,000 bytes: 60 MB of text, and far less of keys.
  const time = logOf(traffic({ hits: 1 })).match(/\[.*?\]/)[0];
  const lines = Array.from({ length: 30_000 }, (_, at) => {
    const key = `/a/path/that/is/long/enough/to/be/a/slice/${at}`;
    return `192.0.2.1 - - ${time} "GET ${key} HTTP/1.1" 200 9 "-" "${"x".repeat(2_000)}"\n`;
  });
  const args = [...given([policies[0]]), "--key", "path"];
  const { candidates } = await replay(args, { input: lines.join(""), node: ["--max-old-space-size=40"] });
  assert.equal(candidates[0].keys, 30_000);
});

test("it is quiet where there is no terminal, and shows a bar where there is one", async (t) => {
  const at = folderWith(t, { log: logOf(traffic()) });
  const args = ["replay", at("log"), ...given([policies[0]])];
  assert.equal((await tollgate(args)).stderr, "");
  const { stderr } = await tollgate(args, {
    node: ["--import", inProject("tests/cli/programs/terminal-errors.mjs")],
  });
  assert.match(stderr, /█{24} 100 % {2}2,000 lines, [\d,]+ a second/);
  assert.ok(stderr.endsWith("\r\x1b[K"));
});

test("the text output has figures, the worst keys and a timeline", async () => {
  const hits = traffic();
  const { stdout } = await tollgate(["replay", ...given([policies[0]])], { input: logOf(hits) });
  const { allowed, denied, worst } = looped(hits, policies[0]);
  const [{ key }] = worst;
  assert.match(stdout, /^2,000 lines, 2026-10-10 23:50:/);
  assert.match(stdout, /^fix_window, 4 in 1m$/m);
  const number = (name, value) => new RegExp(`^  ${name} +${value.toLocaleString("en")} +[\\d.]+ %$`, "m");
  assert.match(stdout, number("allowed", allowed));
  assert.match(stdout, number("denied", denied));
  assert.match(stdout, new RegExp(`^  ${key.replaceAll(".", "\\.")} .* s$`, "m"));
  assert.match(stdout, /^ {2}denied {3}[ ▁▂▃▄▅▆▇█]+$/m);
});

test("the timeline has every hit once, however long the log is", async () => {
  for (const [step, hits] of [
    [1, 50],
    [61, 5_000],
    [86_400, 3_000],
  ]) {
    const start = Date.UTC(2026, 0, 1);
    const list = Array.from({ length: hits }, (_, at) => ({
      ...traffic({ hits: 1 })[0],
      time: start + at * step * 1_000,
    }));
    const { candidates } = await replay(given([policies[0]]), { input: logOf(list) });
    const { start: first, step: each, allowed, denied } = candidates[0].timeline;
    assert.equal(
      allowed.concat(denied).reduce((sum, count) => sum + count, 0),
      hits,
    );
    assert.ok(allowed.length <= 240 && allowed.length === denied.length);
    assert.ok(first <= start && start < first + each);
    const last = list.at(-1).time;
    assert.ok(last >= first + (allowed.length - 1) * each && last < first + allowed.length * each);
  }
});

test("policies may be in a file, alone or by their names", async (t) => {
  const input = logOf(traffic());
  const [window, , , , , bucket] = policies;
  const at = folderWith(t, {
    one: json(window),
    list: json([window]),
    named: json({ short: window, smooth: bucket }),
  });
  const named = async (file) =>
    (await replay(["--policy", at(file)], { input })).candidates.map(({ name }) => name);
  assert.deepEqual(await named("one"), ["fix_window, 4 in 1m"]);
  assert.deepEqual(await named("list"), ["fix_window, 4 in 1m"]);
  assert.deepEqual(await named("named"), [
    "short: fix_window, 4 in 1m",
    "smooth: token_bucket, 4 at once, 1 per 20s",
  ]);
});

test("the same policy has the same label, however it is written; denied hits are named where they matter", async () => {
  const input = logOf(traffic({ hits: 9 }));
  const labels = async (...list) => (await replay(given(list), { input })).candidates.map(({ name }) => name);
  const window = { algorithm: "sliding_window", limit: 4 };
  assert.deepEqual(
    await labels(
      { ...window, scale: 60_000 },
      { ...window, scale: "60s" },
      { ...window, scale: "90s" },
      { ...window, scale: 1_500 },
      { ...window, scale: "24h" },
      { ...window, algorithm: "fix_window", scale: "month" },
    ),
    [
      "sliding_window, 4 in 1m",
      "sliding_window, 4 in 1m",
      "sliding_window, 4 in 90s",
      "sliding_window, 4 in 1500ms",
      "sliding_window, 4 in 1d",
      "fix_window, 4 in month",
    ],
  );
  assert.deepEqual(
    await labels(
      { ...window, scale: "1m" },
      { ...window, scale: "1m", denied: "count", name: "own" },
      { ...window, scale: "1h" },
      { ...window, scale: "1s", denied: "count" },
      { algorithm: "token_bucket", capacity: 4, refillRate: 1, denied: "free" },
    ),
    [
      "sliding_window, 4 in 1m, denied hits are free",
      "own: sliding_window, 4 in 1m, denied hits count",
      "sliding_window, 4 in 1h",
      "sliding_window, 4 in 1s, denied hits count",
      "token_bucket, 4 at once, 1 per 1s",
    ],
  );
});
