// `tollgate top` shows the keys of a Redis, at a bounded cost, and gives the terminal back however it ends.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectTo, createServer as createProxy } from "node:net";
import test from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { connect, startServer } from "../redis/lib/server.mjs";
import { openTerminal } from "./lib/terminal.mjs";
import { tollgate } from "./lib/tollgate.mjs";

/** A live screen that is read often. */
const live = ["top", "--interval", "200", "--timeout", "20000"];

/** A server with keys of two limiters, and an address for the command. */
async function withKeys(t) {
  const server = await startServer({ args: ["--enable-debug-command", "yes"] });
  t.after(() => server.stop());
  const redis = connect(server.port);
  t.after(() => redis.disconnect());
  const options = { client: redis, timeout: "20s" };
  const api = new RedisLimiter(
    [
      { algorithm: "token_bucket", capacity: 50, refillRate: 1, per: "1d", name: "api" },
      { algorithm: "ban", after: 30, scale: "1d", for: "7d" },
    ],
    options,
  );
  const login = new RedisLimiter(
    { algorithm: "sliding_window", limit: 5, scale: "1d" },
    { ...options, name: "login" },
  );
  const { TOLLGATE_URL, NO_COLOR, ...env } = process.env;
  const TOLLGATE_REDIS = `redis://127.0.0.1:${server.port}`;
  return { server, redis, api, login, env: { ...env, TOLLGATE_REDIS } };
}

/** One state, soon. */
const one = ["top", "--once", "--interval", "200", "--timeout", "20000"];

async function asJson(args, env) {
  const { code, stdout, stderr } = await tollgate([...one, "--json", ...args], { env });
  assert.equal(stderr, "");
  assert.equal(code, 0);
  return JSON.parse(stdout);
}

test("it reads what is used, held, banned and leased of every key", async (t) => {
  const { api, login, redis, env } = await withKeys(t);
  await api.hit("a", { api: 20 });
  await api.hit("b", { api: 30 });
  await api.reserve("b", { api: 5 }, { ttl: "1h" });
  await api.ban("c", "3d");
  for (let count = 0; count < 7; count += 1) await login.hit("192.0.2.1");
  const leased = new RedisLimiter(
    { algorithm: "fix_window", limit: 10_000, scale: "1d" },
    { client: redis, timeout: "20s", name: "leased", leases: { ttl: "10s" } },
  );
  for (let count = 0; count < 200; count += 1) await leased.hit("hot");
  // Neither is a key of a limiter.
  await redis.set("tollgate:4:default:broken", "hello");
  await redis.lpush("tollgate:4:default:list", "hello");
  await redis.set("unrelated", "x");

  const all = await asJson([], env);
  assert.deepEqual([all.isComplete, all.keysFound, all.unreadable, all.keysInRedis], [true, 5, 2, 8]);
  const row = (key) => all.keys.find((each) => each.key === key);
  assert.deepEqual(
    ["a", "b", "c", "192.0.2.1"]
      .map(row)
      .map(({ limiter, policy, used, limit, reservations, leases }) => [
        limiter,
        policy,
        used,
        limit,
        reservations,
        leases,
      ]),
    [
      ["default", "api", 20, 50, 0, 0],
      ["default", "api", 35, 50, 1, 0],
      ["default", "api", 0, 50, 0, 0],
      ["login", "sliding_window", 5, 5, 0, 0],
    ],
  );
  assert.ok(row("c").bannedUntil > all.at + 2.9 * 86_400_000);
  assert.equal(row("a").bannedUntil, 0);
  assert.equal(row("hot").leases, 1);
  assert.deepEqual(
    all.groups.map(({ name, policies, keys, banned, reservations, leases }) => [
      name,
      policies,
      keys,
      banned,
      reservations,
      leases,
    ]),
    [
      ["default", "api: token_bucket, 50 at once, 1 per 1d + ban, 7d after 30 denials in 1d", 3, 1, 1, 0],
      ["leased", "fix_window, 10,000 in 1d", 1, 0, 0, 1],
      ["login", "sliding_window, 5 in 1d", 1, 0, 0, 0],
    ],
  );
  const named = await asJson(["--name", "login"], env);
  assert.deepEqual(
    named.keys.map(({ key, limiter }) => [limiter, key]),
    [["login", "192.0.2.1"]],
  );
  const filtered = await asJson(["--filter", "API", "--sort", "key"], env);
  assert.deepEqual(
    filtered.keys.map(({ key }) => key),
    ["a", "b", "c"],
  );
  const text = await tollgate(one, { env });
  assert.match(text.stdout, /^tollgate top {2}redis 127\.0\.0\.1:\d+ {2}20.* UTC\n5 of 5 keys read\n/);
  assert.match(text.stdout, /^192\.0\.2\.1 +login +sliding_window +5 of 5 /m);
  assert.ok(!text.stdout.includes("\x1b"));
});

test("rates and denials are those between two readings", async (t) => {
  const { server, api, env } = await withKeys(t);
  await api.hit("key", { api: 1 });
  // Between the command and Redis: before the second reading the key is used.
  let readings = 0;
  const proxy = createProxy((client) => {
    const redis = connectTo(server.port, "127.0.0.1");
    redis.pipe(client);
    for (const each of [client, redis]) each.on("error", () => {});
    client.on("data", async (chunk) => {
      if (String(chunk).includes("DBSIZE") && ++readings === 2) {
        client.pause();
        await api.hit("key", { api: 7 });
        for (let count = 0; count < 3; count += 1) await api.hit("key", { api: 51 });
        client.resume();
      }
      redis.write(chunk);
    });
    client.on("end", () => redis.end());
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  t.after(() => proxy.close());
  const over = { ...env, TOLLGATE_REDIS: `redis://127.0.0.1:${proxy.address().port}` };
  const { keys, groups } = await asJson([], over);
  const [{ rate, denied, used }] = keys;
  assert.deepEqual([readings, denied, used], [2, 3, 8]);
  // Seven of one cost, three of another: in how long is not known.
  assert.ok(rate > 0 && Math.abs(groups[0].denialRate / rate - 3 / 7) < 1e-9, JSON.stringify(groups));
  assert.equal(groups[0].rate, rate);
});

test("a Redis with 200,000 other keys costs no more than the budget, and the screen says so", async (t) => {
  const { redis, api, env } = await withKeys(t);
  await redis.call("DEBUG", "POPULATE", "200000", "other", "20");
  for (let number = 0; number < 300; number += 1) await api.hit(`user:${number}`, { api: 1 });
  await redis.call("CONFIG", "RESETSTAT");
  const part = await asJson(["--scan", "5000", "--keys", "3"], env);
  assert.ok(part.keysScanned <= 10_000 && !part.isComplete);
  assert.equal(part.keysInRedis, 200_300);
  assert.match(part.coverage, /^\d of \d+\+ keys read, 10,000 of 200,300 in Redis looked at$/);
  const calls = async (command) => {
    const stats = await redis.info("commandstats");
    return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, "m").exec(stats)?.[1] ?? 0);
  };
  // Two readings of five calls and three keys each.
  assert.equal(await calls("scan"), 10);
  assert.ok((await calls("get")) <= 6);

  const whole = await asJson(["--scan", "300000"], env);
  assert.deepEqual([whole.isComplete, whole.keysFound, whole.keys.length], [true, 300, 300]);
});

test("the live screen sorts, filters, pauses, scrolls and fits the terminal", async (t) => {
  const { api, login, env } = await withKeys(t);
  for (let number = 10; number < 60; number += 1) await api.hit(`user:${number}`, { api: number - 9 });
  for (let count = 0; count < 5; count += 1) await login.hit("192.0.2.1");
  await api.hit("ключ 日本 \x1b[31m", { api: 1 });
  const terminal = await openTerminal(t, live, { env, columns: 110, lines: 24 });
  const lines = (screen) => screen.trimEnd().split("\n");
  const first = (screen) => screen.split("\n").find((_, at, all) => /^key /.test(all[at - 1] ?? "")) ?? "";

  let shown = await terminal.until(/^q quit/m);
  assert.ok(await terminal.isAlternate());
  assert.match(shown, /^tollgate top {2}redis 127\.0\.0\.1:\d+/);
  assert.match(shown, /^52 of 52 keys read$/m);
  assert.match(shown, /denied ▼/);
  assert.equal(lines(shown).length, 24);

  await terminal.press("u");
  shown = await terminal.until(/used ▼/);
  assert.match(first(shown), /^(user:59|192\.0\.2\.1) .*(50 of 50|5 of 5)/);
  await terminal.press("k");
  shown = await terminal.until(/^key ▼/m);
  assert.match(shown, /^192\.0\.2\.1 /m);
  await terminal.press("End");
  shown = await terminal.until(/^ключ 日本 �\[31m {2}/m);
  await terminal.press("Home");
  await terminal.until(/^192\.0\.2\.1 /m);
  await terminal.press("Down");
  await terminal.until(/^2 to \d+ of 52 keys/m);

  await terminal.press("/");
  await terminal.press("-l", "user:5x");
  await terminal.until(/^none of 52 keys has "user:5x"$/m);
  await terminal.press("BSpace");
  await terminal.press("Enter");
  shown = await terminal.until(/^filter: user:5 {2}q quit/m);
  assert.match(shown, /^1 to 10 of 10 keys/m);
  await terminal.press("Escape");
  await terminal.until(/ of 52 keys;/);

  await terminal.press("p");
  shown = await terminal.until(/PAUSED/);
  await api.hit("late", { api: 1 });
  const again = await tollgate([...one, "--json"], { env });
  assert.equal(JSON.parse(again.stdout).keysFound, 53);
  assert.match(await terminal.screen(), /^52 of 52 keys read$/m);
  await terminal.press("p");
  await terminal.until(/^53 of 53 keys read$/m);

  await terminal.press("?");
  await terminal.until(/^d {2}most denied first/m);
  await terminal.press("?");
  await terminal.until(/^key ▼/m);

  for (const [columns, height] of [
    [48, 14],
    [200, 40],
    [20, 6],
  ]) {
    await terminal.resize(columns, height);
    // As many lines as fit, and none that is longer.
    shown = await terminal.until(columns > 40 ? /q quit/ : /tollgate top/);
    assert.ok(lines(shown).length <= height);
  }
  await terminal.resize(110, 24);
  await terminal.until(/^q quit {2}p pause {2}\/ filter {2}d r u b h k sort/m);
  assert.ok((await terminal.screen("-e")).includes("\x1b[1mtollgate top"));

  await terminal.press("q");
  shown = await terminal.until(/exit code 0/);
  assert.ok(!(await terminal.isAlternate()));
  assert.ok(!shown.includes("tollgate top"));
});

test("signals and Ctrl-C give the terminal back, and the exit code names them", async (t) => {
  const { api, env } = await withKeys(t);
  await api.hit("key", { api: 1 });
  for (const [end, code] of [
    [(terminal) => terminal.press("C-c"), 130],
    [(terminal) => terminal.signal("SIGTERM"), 143],
    [(terminal) => terminal.signal("SIGHUP"), 129],
  ]) {
    const terminal = await openTerminal(t, live, { env: { ...env, NO_COLOR: "1" } });
    await terminal.until(/^q quit/m);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with an escape
    assert.doesNotMatch(await terminal.screen("-e"), /\x1b\[\d*m/);
    await end(terminal);
    await terminal.until(new RegExp(`exit code ${code}`));
    assert.ok(!(await terminal.isAlternate()));
    // The terminal echoes again.
    await terminal.press("-l", "echoed");
    await terminal.until(/echoed/);
  }
});

test("a Redis that goes away is named on the screen, and read again once it is back", async (t) => {
  const { server, api, env } = await withKeys(t);
  await api.hit("key", { api: 1 });
  const terminal = await openTerminal(t, live, { env });
  await terminal.until(/^1 of 1 keys read$/m);
  await server.stop();
  const shown = await terminal.until(/trying again$/m);
  assert.match(
    shown,
    /^127\.0\.0\.1:\d+ (refused the connection; is Redis there\?|closed the connection); trying again$/m,
  );
  assert.match(shown, /^key /m);
  const back = await startServer({ port: server.port });
  t.after(() => back.stop());
  await terminal.until(/^0 of 0 keys read$/m);
  assert.doesNotMatch(await terminal.screen(), /trying again/);
  await terminal.press("q");
  await terminal.until(/exit code 0/);
});

/** A Worker's watch endpoint, as far as the command reads it. */
async function watching(t, respond) {
  const server = createServer((request, response) => respond(request, response));
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { TOLLGATE_REDIS, ...env } = process.env;
  return {
    ...env,
    TOLLGATE_TOKEN: "secret",
    TOLLGATE_URL: `http://127.0.0.1:${server.address().port}/_tollgate`,
  };
}

const json = (response, status, body) =>
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));

const problem = (response, status, body) =>
  response.writeHead(status, { "Content-Type": "application/problem+json" }).end(JSON.stringify(body));

test("of a Worker it shows the rules and the most denied keys", async (t) => {
  const asked = [];
  const zeros = Array.from({ length: 12 }, () => 0);
  const seconds = { allowed: [...zeros.slice(0, 9), 40, 60, 7], denied: [...zeros.slice(0, 9), 5, 5, 99] };
  const env = await watching(t, (request, response) => {
    asked.push([request.method, request.url, request.headers.authorization]);
    // Of the two bans that denied, one was lifted.
    if (request.url.endsWith("/peek"))
      return json(response, 200, [
        { allowed: false, reason: "banned", retryAfter: 3_600_000 },
        { allowed: true, retryAfter: 0 },
      ]);
    json(response, 200, {
      now: 4_102_444_800_000,
      keys: "hashed",
      step: { seconds: 5_000 },
      rules: [
        { rule: "POST /login", via: "gateway", policies: ["login"], mode: "enforce", seconds },
        { rule: "", via: "api", policies: ["api", "daily"], mode: "shadow", seconds },
      ],
      top: [
        { key: "3f2a", object: "#1", denied: 412, error: 0 },
        { key: "77aa", object: "#2", denied: 300, error: 40 },
      ],
      denials: [
        {
          object: "#1",
          at: 4_102_444_799_000,
          policy: "login",
          policies: ["login"],
          count: 5,
          limit: 5,
          retryAfter: 3_601_000,
          banned: true,
        },
        {
          object: "#2",
          at: 4_102_444_799_000,
          policy: "strikes",
          policies: ["strikes"],
          count: 0,
          limit: 9_007_199_254_740_991,
          retryAfter: 3_601_000,
          banned: true,
        },
      ],
    });
  });
  const { keys, groups, source } = await asJson([], env);
  assert.deepEqual(asked, [
    ["GET", "/_tollgate/v1/watch", "Bearer secret"],
    ["POST", "/_tollgate/v1/peek", "Bearer secret"],
  ]);
  assert.match(source, /^worker 127\.0\.0\.1:\d+$/);
  assert.deepEqual(
    groups.map(({ name, policies, rate, denialRate }) => [name, policies, rate, denialRate]),
    [
      ["POST /login", "login", 10, 1],
      ["api (shadow)", "api + daily", 10, 1],
    ],
  );
  assert.deepEqual(
    keys.map(({ key, object, policy, used, limit, denied, deniedError, bannedUntil }) => [
      `${key} ${object}`,
      policy,
      used,
      limit,
      denied,
      deniedError,
      bannedUntil,
    ]),
    [
      ["3f2a #1", "login", 5, 5, 412, 0, 4_102_448_400_000],
      ["77aa #2", "strikes", null, null, 300, 40, 0],
    ],
  );
  const { stdout } = await tollgate(one, { env });
  assert.match(stdout, /^rule +policies +allowed\/s +denied\/s$/m);
  assert.match(stdout, /^3f2a +login +5 of 5 +412 +1 h$/m);
  assert.match(stdout, /^77aa +strikes +– +260–300 +·$/m);
});

test("a Worker that does not let it in, does not watch, or is none, is an error of one line", async (t) => {
  for (const [respond, said] of [
    [
      (response) =>
        response
          .writeHead(401, { "WWW-Authenticate": 'Bearer realm="tollgate", error="invalid_token"' })
          .end(),
      /rejected the token in TOLLGATE_TOKEN\n$/,
    ],
    // An origin, which the prefix of another Worker leads to, has a realm of its own.
    [
      (response) => response.writeHead(401, { "WWW-Authenticate": "Basic realm=shop" }).end("{}"),
      /is not a Tollgate Worker: it responded 401; --url needs the prefix of its API\n$/,
    ],
    [
      (response) => problem(response, 403, { title: "No token is configured, so the API is closed" }),
      /: No token is configured, so the API is closed\n$/,
    ],
    [
      (response) => problem(response, 404, { code: "watch_off", title: "…" }),
      /set watch = true in \[vars\.TOLLGATE\]\n$/,
    ],
    [
      (response) => problem(response, 503, { code: "unanswered", detail: "the object is late" }),
      /: the object is late\n$/,
    ],
    [
      (response) => response.writeHead(404).end("nothing"),
      /is not a Tollgate Worker: it responded 404; --url needs the prefix of its API\n$/,
    ],
    [
      (response) => response.writeHead(200, { "Content-Type": "text/html" }).end("<p>hello"),
      /is not a Tollgate Worker: it responded 200/,
    ],
  ]) {
    const env = await watching(t, (_, response) => respond(response));
    const { code, stderr, stdout } = await tollgate(one, { env });
    assert.match(stderr, said);
    assert.match(
      stderr,
      /^tollgate top: 127\.0\.0\.1:\d+ [^\n]*\n$|^tollgate top: 127\.0\.0\.1:\d+: [^\n]*\n$/,
    );
    assert.deepEqual([code, stdout], [1, ""]);
  }
});
