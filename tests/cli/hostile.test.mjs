// Nothing that a log, a Redis, a Worker or a configuration says reaches a terminal as control characters, a stack or a password.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcp } from "node:net";
import test from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { connect, startServer } from "../redis/lib/server.mjs";
import { openTerminal } from "./lib/terminal.mjs";
import { folderWith, tollgate } from "./lib/tollgate.mjs";

/** C0, DEL, C1, separators of lines, and marks of direction. */
const nasty = "\u0007\u001b[2J\u007f\u009b31m\u061c\u200e\u2028\u202e\u2066";

// biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
const unsafe = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

const { TOLLGATE_URL, TOLLGATE_REDIS, ...clean } = process.env;

/** Runs the command, and checks that what it prints is safe. An error is one line without a stack. */
async function safely(args, options = {}) {
  const result = await tollgate(args, { env: clean, ...options });
  const { stdout, stderr } = result;
  for (const text of [stdout, stderr]) assert.doesNotMatch(text, unsafe);
  assert.ok(stderr === "" || /^tollgate[^\n]*\n$/.test(stderr), stderr);
  assert.doesNotMatch(stderr, /\n\s+at /);
  return result;
}

const policy = '{"algorithm":"fix_window","limit":1,"scale":"1d"}';
const at = "2026-10-10T13:55:36Z";

test("replay: keys, paths, agents, users, fields and lines that cannot be read", async (t) => {
  const lines = [
    ...Array.from({ length: 9 }, () => ({
      time: at,
      ip: "192.0.2.1",
      path: `/${nasty}`,
      agent: nasty,
      user: nasty,
    })),
    ...Array.from({ length: 9 }, () => ({ time: at, ip: nasty })),
    { time: nasty },
  ];
  const input = `${lines.map((line) => JSON.stringify(line)).join("\n")}\n${nasty}\n`;
  for (const more of [
    [],
    ["--json"],
    ["--key", "path"],
    ["--key", "user", "--key", "agent"],
    ["--key", nasty],
  ])
    await safely(["replay", "--policy", policy, ...more], { input });
  const file = folderWith(t, {})("report.html");
  await safely(["replay", "--policy", policy, "--key", "path", "--html", file], { input });
  const common = `192.0.2.1 - ${nasty} [10/Oct/2026:13:55:36 +0000] "GET /${nasty} HTTP/1.1" 200 1 "-" "${nasty}"\n`;
  await safely(["replay", "--policy", policy], { input: common.repeat(9) });
  await safely(["replay", "--policy", policy], { input: `${nasty} hello\n`.repeat(20) });
});

test("replay: a JSON summary keeps the text, as escapes", async () => {
  const line = `${JSON.stringify({ time: at, path: nasty })}\n`;
  const { stdout } = await safely(["replay", "--policy", policy, "--key", "path", "--json"], {
    input: line.repeat(2),
  });
  assert.equal(JSON.parse(stdout).candidates[0].worst[0].key, nasty);
});

test("check and replay: names and values of a configuration", async (t) => {
  const quoted = JSON.stringify(nasty).replaceAll("\u007f", "\\u007f");
  const config = folderWith(t, {
    "wrangler.toml": `name = "a"\n[vars.TOLLGATE]\n${quoted} = ${quoted}\n[vars.TOLLGATE.policies]\n${quoted} = { algorithm = ${quoted} }\n`,
    "wrangler.json": JSON.stringify({
      vars: { TOLLGATE: { upstream: nasty, rules: [{ path: `/${nasty}`, policies: nasty }] } },
      durable_objects: { bindings: [{ name: nasty, class_name: nasty }] },
    }),
    [`${nasty.replaceAll("\u0000", "")}.toml`]: "a = ",
    "policies.json": JSON.stringify({ [nasty]: JSON.parse(policy) }),
  });
  for (const file of ["wrangler.toml", "wrangler.json", `${nasty}.toml`])
    for (const more of [[], ["--json"]]) await safely(["check", config(file), ...more]);
  const line = `${JSON.stringify({ time: at, ip: "192.0.2.1" })}\n`;
  await safely(["replay", "--policy", config("policies.json")], { input: line.repeat(3) });
  await safely(["replay", "--config", config("wrangler.toml")], { input: line });
});

test("tables nested a hundred thousand deep are an error of one line", async (t) => {
  const depth = 100_000;
  const config = folderWith(t, {
    "wrangler.toml": `a = ${"[".repeat(depth)}${"]".repeat(depth)}\n`,
    "tables.toml": `[${Array.from({ length: depth }, () => "a").join(".")}]\n`,
    "wrangler.json": `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`,
    "vars.json": JSON.stringify({ vars: { TOLLGATE: `${"[".repeat(depth)}${"]".repeat(depth)}` } }),
    "policies.json": `${"[".repeat(depth)}${"]".repeat(depth)}`,
  });
  for (const [name, said] of [
    ["wrangler.toml", /: it is nested too deeply\n$/],
    ["tables.toml", /RateLimiterObject is required\n$/],
    ["wrangler.json", /: it is nested too deeply\n$/],
    ["vars.json", /: it is not an object\n/],
  ]) {
    const { code, stdout } = await safely(["check", config(name)]);
    assert.match(stdout, said, name);
    assert.equal(code, 1, name);
  }
  const { code } = await safely(["replay", "--policy", config("policies.json")], { input: "" });
  assert.notEqual(code, 0);
});

/** A Worker that answers everything with what `answer` makes of a path. */
async function answering(t, answer) {
  const server = createServer((request, response) => {
    const [status, body, headers = { "Content-Type": "application/json" }] = answer(request.url);
    response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return {
    ...clean,
    TOLLGATE_TOKEN: "secret",
    TOLLGATE_URL: `http://127.0.0.1:${server.address().port}/_tollgate`,
  };
}

const ofWorker = [
  ["top", "--once", "--interval", "200"],
  ["top", "--once", "--interval", "200", "--json"],
  ["get", "a", "--policy", "api"],
  ["why", "a"],
  ["why", "a", "--json"],
  ["reset", "a", "--policy", "api"],
  ["ban", "a", "--policy", "api", "--for", "1h"],
  ["unban", "a", "--policy", "api"],
  ["except", "a", "--policy", "api"],
  ["except", "a", "--policy", "api", "--allow", "--for", "1h"],
];

const junk = [
  null,
  [],
  [null],
  [[]],
  {},
  "text",
  7,
  true,
  [{ count: nasty, until: nasty, decision: nasty, exception: nasty, expiresAt: nasty }],
  [{ count: 1, until: 1e300, expiresAt: 1e300, exception: { [nasty]: { limit: 1 } } }],
  { policies: nasty, denials: nasty },
  { policies: [null], denials: [null] },
  { policies: [{ policy: nasty, error: { message: nasty } }], denials: [] },
  { policies: [{ policy: 7, decision: {} }], denials: [{ at: nasty, policies: nasty }] },
  {
    policies: [],
    denials: [{ at: 1e300, times: 1, policy: nasty, count: 1, limit: 1, cost: 1, retryAfter: 1 }],
  },
  { now: nasty, keys: nasty, step: null, rules: [], top: [], denials: [] },
  { now: 1e300, keys: "hashed", step: { seconds: 5_000 }, rules: [], top: [], denials: [] },
  { now: 0, keys: "plain", step: { seconds: 5_000 }, rules: [], top: [{ key: {}, object: 7 }], denials: [] },
];

test("whatever a Worker answers is shown safely, or is an error of one line", async (t) => {
  let answer;
  const env = await answering(t, () => answer);
  for (const body of junk) {
    answer = [200, body];
    for (const args of ofWorker) await safely(args, { env });
  }
  for (const [status, body, type] of [
    [200, "{", "application/json"],
    [500, { title: nasty, detail: nasty, code: nasty }, "application/problem+json"],
    [401, { title: { a: 1 } }, "application/problem+json"],
    [302, "", "text/html"],
    [200, nasty, "text/html"],
  ]) {
    answer = [status, body, { "Content-Type": type, Location: "http://127.0.0.1:1/" }];
    for (const args of ofWorker) assert.equal((await safely(args, { env })).code, 1);
  }
});

test("keys and rules of a Worker are shown without what a terminal acts on", async (t) => {
  const zeros = Array.from({ length: 12 }, () => 0);
  const seconds = { allowed: zeros, denied: zeros };
  const env = await answering(t, (url) =>
    url.includes("/watch")
      ? [
          200,
          {
            now: 4_102_444_800_000,
            keys: "plain",
            step: { seconds: 5_000 },
            rules: [{ rule: nasty, via: nasty, policies: [nasty], mode: "enforce", seconds }],
            top: [{ key: `key${nasty}`, object: "#1", denied: 4, error: 0 }],
            denials: [],
          },
        ]
      : [404, {}],
  );
  assert.match((await safely(["top", "--once", "--interval", "200"], { env })).stdout, /^key�+\[2J�+31m�+ /m);
  const { until, screen } = await openTerminal(t, ["top", "--interval", "200"], { env });
  const shown = await until(/key/);
  assert.match(shown, /key�/);
  // Of the colours, only the command's own.
  assert.doesNotMatch(await screen("-e"), /\u009b|\u202e/);
});

/** What answers a connection with these bytes, whatever it is asked. */
async function replying(t, bytes) {
  const server = createTcp((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.write(bytes));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return `redis://127.0.0.1:${server.address().port}`;
}

test("whatever a Redis replies is an error of one line", async (t) => {
  for (const bytes of [
    "*1\r\n".repeat(200_000),
    "+OK\r\n",
    ":1\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*2\r\n$1\r\nx\r\n$1\r\ny\r\n",
    `-${nasty.replaceAll("\n", "")}\r\n`,
    `+${nasty}\r\n`,
    nasty.repeat(3),
    "*99999999\r\n",
  ]) {
    const TOLLGATE_REDIS = await replying(t, bytes);
    for (const args of [
      ["get", "a"],
      ["why", "a"],
      ["unban", "a"],
      ["except", "a"],
      ["top", "--once", "--interval", "200"],
    ]) {
      const { stderr } = await safely([...args, "--timeout", "700"], { env: { ...clean, TOLLGATE_REDIS } });
      assert.notEqual(stderr, "");
    }
  }
});

test("keys and values of a Redis are shown safely", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  const redis = connect(server.port);
  t.after(() => redis.disconnect());
  const env = { ...clean, TOLLGATE_REDIS: `redis://127.0.0.1:${server.port}` };
  const limiter = new RedisLimiter(JSON.parse(policy), { client: redis, timeout: "20s", history: 5 });
  for (let count = 0; count < 3; count += 1) await limiter.hit(nasty);
  await limiter.except(nasty, { limit: 7 }, { for: "1h" });
  await redis.set(`tollgate:4:default:${nasty}bad`, nasty);
  const denial = {
    at: 1_760_000_000_000,
    policy: nasty,
    times: 1,
    count: 1,
    limit: 1,
    cost: nasty,
    retryAfter: 1,
  };
  await redis.lpush(`tollgate:history:default:${nasty}`, JSON.stringify({ ...denial, reason: nasty }));
  const patience = ["--timeout", "20000"];
  const { stdout } = await safely(["top", "--once", "--interval", "200", ...patience], { env });
  assert.match(stdout, /�\[2J/);
  for (const command of ["get", "why", "except", "unban", "reset"])
    for (const key of [nasty, `${nasty}bad`]) await safely([command, key, ...patience], { env });
});

test("passwords in addresses are never shown", async () => {
  for (const [name, value] of [
    ["TOLLGATE_URL", "https://ann:hunter2@limits.example.com/_tollgate"],
    ["TOLLGATE_URL", "https://ann:hunter2@["],
    ["TOLLGATE_URL", "ftp://ann:hunter2@limits.example.com"],
    ["TOLLGATE_URL", "https://hunter2@limits.example.com"],
    ["TOLLGATE_REDIS", "redis://ann:hunter2@["],
    ["TOLLGATE_REDIS", "redis://ann:hunter2@127.0.0.1:1"],
    ["TOLLGATE_REDIS", "redis://ann:hunter2@127.0.0.1:1/x"],
    ["TOLLGATE_REDIS", "redis://ann:hunter2%@127.0.0.1:1"],
    ["TOLLGATE_REDIS", "http://ann:hunter2@127.0.0.1:1"],
  ])
    for (const args of [
      ["get", "a", "--policy", "api"],
      ["top", "--once"],
      ["why", "a"],
    ]) {
      const { code, stdout, stderr } = await safely(args, {
        env: { ...clean, TOLLGATE_TOKEN: "secret", [name]: value },
      });
      assert.doesNotMatch(stdout + stderr, /hunter2/);
      assert.notEqual(code, 0);
    }
});

test("an address without a prefix has the usual one, so that no token goes to the origin", async (t) => {
  const asked = [];
  const env = await answering(t, (url) => {
    asked.push(url);
    return [404, "", {}];
  });
  const root = env.TOLLGATE_URL.replace("/_tollgate", "");
  for (const url of [root, `${root}/`])
    for (const args of [
      ["get", "a", "--policy", "api"],
      ["top", "--once"],
    ])
      await safely(args, { env: { ...env, TOLLGATE_URL: url } });
  assert.ok(asked.length >= 4 && asked.every((url) => url.startsWith("/_tollgate/v1/")), asked.join(" "));
});

test("a megabyte of dots in a line takes no quadratic time", async () => {
  const dots = `${"a.".repeat(500_000)} 192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1\n`;
  const { code } = await safely(["replay", "--policy", policy, "--key", "host"], { input: dots.repeat(4) });
  assert.equal(code, 0);
});
