// `get`, `reset`, `ban` and `unban` reach the keys of a limiter in Redis, and say what is wrong with an address.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { connect as connectPlain, createServer } from "node:net";
import test from "node:test";
import { createServer as createTls } from "node:tls";
import { Cluster } from "ioredis";
import { RedisLimiter } from "tollgate/redis";
import { inProject } from "../../scripts/lib/paths.mjs";
import { startCluster } from "../redis/lib/cluster.mjs";
import { startServer } from "../redis/lib/server.mjs";
import { withServer } from "../redis/lib/setting.mjs";
import { folderWith, tollgate } from "./lib/tollgate.mjs";

const setting = withServer();
const policies = [
  { algorithm: "fix_window", limit: 5, scale: "1d", name: "api" },
  { algorithm: "ban", after: 3, scale: "10m", for: "1h" },
];

/** Returns a limiter with keys of its own, and the command over them. */
function fleet(own = policies, more = {}) {
  const options = setting.options({ restore: true, ...more });
  const limiter = new RedisLimiter(own, options);
  const { TOLLGATE_URL, ...env } = process.env;
  const address = `redis://127.0.0.1:${setting.server.port}`;
  const command = (args, over = {}) =>
    tollgate([...args, "--prefix", options.prefix, "--timeout", "20000"], {
      env: { ...env, TOLLGATE_REDIS: address, ...over },
    });
  return { limiter, options, command, address };
}

/** Runs the command, and returns its result as JSON. */
async function asJson(command, args) {
  const { code, stdout, stderr } = await command([...args, "--json"]);
  assert.equal(stderr, "");
  assert.equal(code, 0);
  return JSON.parse(stdout);
}

test("get shows what counts for a key, under the policies that Redis has of it", async () => {
  const { limiter, command } = fleet();
  for (let count = 0; count < 6; count += 1) await limiter.hit("user:42");
  await limiter.reserve("user:43", { api: 2 }, { ttl: "1h" });
  const { expiresAt, retryAfter, moreAfter, policies, ...rest } = await asJson(command, ["get", "user:42"]);
  assert.deepEqual(rest, {
    key: "user:42",
    count: 5,
    limit: 5,
    remaining: 0,
    allowed: false,
    bannedUntil: 0,
    exception: null,
    reservations: 0,
    leases: 0,
  });
  assert.equal(expiresAt, await limiter.expiresAt("user:42", "api"));
  assert.ok(retryAfter > 0 && retryAfter <= 86_400_000 && Math.abs(moreAfter - retryAfter) < 2);
  assert.deepEqual(
    policies.map(({ policy, count, limit }) => [policy, count, limit]),
    [
      ["api", 5, 5],
      ["ban", 1, 3],
    ],
  );
  const reserved = await asJson(command, ["get", "user:43"]);
  assert.deepEqual([reserved.count, reserved.reservations, reserved.allowed], [2, 1, true]);
  const { stdout } = await command(["get", "user:42"]);
  assert.match(stdout, /^count {6}5\nlimit {6}5\nremaining {2}0\nallowed {4}no, retry after \d+ ms\nexpires/);
  assert.match(stdout, /^api {8}5 of 5, until 20.*\nban {8}1 of 3 denials, until 20.*$/m);
});

test("every algorithm's policy is read from Redis as it was written", async () => {
  const own = [
    { algorithm: "fix_window", limit: 9, scale: "day", utcOffset: "+02:00", name: "d" },
    { algorithm: "fix_window_per_key", limit: 9, scale: "30h" },
    { algorithm: "sliding_window", limit: 9, scale: "1d", name: "50% off! @home" },
    { algorithm: "sliding_counter", limit: 9, scale: "10d" },
    { algorithm: "token_bucket", capacity: 9, refillRate: 2, per: "1d" },
    { algorithm: "leaky_bucket", capacity: 9, leakRate: 2, per: "1d" },
  ];
  const { limiter, options, command } = fleet(own);
  await limiter.hit("key", 2);
  assert.equal((await asJson(command, ["reset", "key"])).reset, true);
  const decision = await limiter.hit("key", 1);
  assert.deepEqual([decision.count, decision.remaining], [1, 8]);
  const { policies } = await asJson(command, ["get", "key"]);
  // The count of a token bucket is what is left.
  assert.deepEqual(
    policies.map(({ policy, count }) => [policy, count]),
    limiter.policies.map(({ name, algorithm }) => [name ?? algorithm, algorithm === "token_bucket" ? 8 : 1]),
  );
  // The command wrote under the same policies, so the entry names none. A time or a mark may contain an @ as well.
  const { text } = await setting.value(options);
  assert.match(text, /^b/);
  assert.doesNotMatch(text, /[@{]\d+\.\d+\./);
});

test("ban and unban reach every process, also for a key that was never used", async () => {
  const { limiter, command } = fleet();
  await limiter.hit("known");
  const { bannedUntil } = await asJson(command, ["ban", "stranger", "--for", "3d"]);
  assert.ok(bannedUntil > Date.now() + 2.9 * 86_400_000 && bannedUntil < Date.now() + 3.1 * 86_400_000);
  assert.equal((await limiter.hit("stranger")).reason, "banned");
  assert.match((await command(["get", "stranger"])).stdout, /^banned {5}until 20/m);
  assert.equal((await command(["unban", "stranger"])).stdout, "stranger is not banned any more.\n");
  assert.equal((await command(["unban", "stranger"])).stdout, "stranger was not banned.\n");
  const { stdout } = await command(["ban", "stranger", "--for", "60000", "--policy", "ban"]);
  assert.match(stdout, /^stranger is banned until 20\d\d-.* UTC\.\n$/);
});

test("a reset holds, also where processes know the key and Redis lost it", async () => {
  const { limiter, options, command } = fleet([{ algorithm: "fix_window", limit: 5, scale: "1d" }]);
  const other = new RedisLimiter(limiter.policies, options);
  await limiter.hit("key", 4);
  await other.hit("other");
  assert.equal((await command(["reset", "key"])).stdout, "key was reset.\n");
  assert.equal((await limiter.hit("key")).count, 1);
  await limiter.hit("key", 3);
  // Deleted, the key comes back. Reset, it does not.
  const { redis } = setting;
  const [name] = await redis.keys(`${options.prefix}*:key`);
  await redis.del(name);
  assert.equal(await limiter.get("key"), 4);
  await redis.del(name);
  assert.equal((await command(["reset", "key"])).stdout, "key had no state.\n");
  assert.equal((await limiter.hit("key")).count, 1);
  assert.equal((await other.hit("key")).count, 2);
});

test("a reset of a leased key drops the lease in Redis, and its holder's report brings nothing back", async () => {
  const policy = { algorithm: "token_bucket", capacity: 1_000, refillRate: 1, per: "1d" };
  const { limiter, command } = fleet(policy, { leases: { ttl: "10s" } });
  for (let count = 0; count < 200; count += 1) await limiter.hit("hot");
  const before = await asJson(command, ["get", "hot"]);
  assert.equal(before.leases, 1);
  assert.equal((await asJson(command, ["reset", "hot", "--reservations"])).reset, true);
  assert.match((await command(["get", "hot"])).stderr, /^tollgate get: hot has no state/);
  for (let count = 0; count < 50; count += 1) await limiter.hit("hot");
  // A peek is sent after the reports of the lease; the lease that was dropped may still be spent.
  await limiter.peek("hot");
  const after = await command(["get", "hot", "--json"]);
  const used = after.code === 1 ? 0 : JSON.parse(after.stdout).limit - JSON.parse(after.stdout).remaining;
  assert.ok(used <= 200, `${used} are used`);
});

test("except gives a key other numbers in every process, allows or denies it, and lifts that", async () => {
  const { limiter, command } = fleet();
  await limiter.hit("key", { api: 5 });
  assert.equal((await limiter.hit("key")).allowed, false);
  assert.deepEqual(await asJson(command, ["except", "key"]), { key: "key", exception: null });
  const { until } = await asJson(command, ["except", "key", "api.limit=1000", "ban.after=9", "--for", "3d"]);
  assert.ok(Math.abs(until - Date.now() - 3 * 86_400_000) < 600_000);
  const decision = await limiter.peek("key", 0);
  assert.deepEqual([decision.allowed, decision.limit, decision.remaining], [true, 1_000, 995]);
  const exception = { until, policies: { api: { limit: 1_000 }, ban: { after: 9 } } };
  assert.deepEqual(await limiter.exceptions("key"), exception);
  assert.deepEqual((await asJson(command, ["except", "key"])).exception, exception);
  assert.deepEqual((await asJson(command, ["get", "key"])).exception, exception);
  assert.match(
    (await command(["except", "key"])).stdout,
    /^key has api\.limit=1000 ban\.after=9 until 20\d\d-\S+ \S+ UTC\.\n$/,
  );
  assert.match((await command(["why", "key"])).stdout, /^exception +api\.limit=1000 ban\.after=9 until 20/m);

  const date = new Date(Date.now() + 86_400_000).toISOString();
  const allowed = await asJson(command, ["except", "key", "--allow", "--until", date]);
  assert.equal(allowed.until, Date.parse(date));
  assert.equal((await limiter.hit("key", { api: 5_000 })).allowed, true);
  await asJson(command, ["except", "key", "--deny", "--for", "60000"]);
  assert.equal((await limiter.hit("key")).reason, "denied");
  const lift = ["except", "key", "--lift"];
  assert.equal((await command(lift)).stdout, "key has no exception any more.\n");
  assert.equal((await command(lift)).stdout, "key had no exception.\n");
  // A hit may be denied as before for two seconds.
  assert.equal((await limiter.peek("key")).reason, undefined);

  for (const [args, code, said] of [
    [["daily.limit=9", "--for", "1h"], 1, /: policy: "daily" is not/],
    [["api.limit=0", "--for", "1h"], 1, /: api\.limit: 0 is not an integer from 1/],
    [["api.scale=9", "--for", "1h"], 1, /scale/],
    [["api.limit=9", "--for", "401d"], 1, /: for: "401d" is not/],
    [["api.limit=9", "--until", "2020-01-01"], 1, /: until: 1577836800000 is not/],
    [["api.limit=9"], 2, /: --for or --until is required/],
    [["--allow", "--for", "1h", "--until", "2099-01-01"], 2, /: --for or --until is required/],
    [["--allow", "--deny", "--for", "1h"], 2, /: use one of --allow, --deny, --lift and other numbers/],
    [["api.limit=9", "--lift"], 2, /: use one of --allow/],
    [["--for", "1h"], 2, /: --for needs --allow, --deny or a number such as limit=1000/],
    [["--lift", "--for", "1h"], 2, /: --for needs --allow/],
    [["limit:9", "--for", "1h"], 2, /: "limit:9" is not a number such as limit=1000/],
    [["a.limit=9", "a.limit=8", "--for", "1h"], 2, /: a\.limit=8: there is another limit/],
    [["api.limit=9", "--until", "soon"], 2, /: --until: "soon" is not a time/],
  ]) {
    const failed = await command(["except", "key", ...args]);
    assert.match(failed.stderr, said);
    assert.deepEqual([failed.code, failed.stdout], [code, ""], args.join(" "));
  }
});

test("why tells what counts now, when more comes, and the denials that are kept", async () => {
  const { limiter, command } = fleet(policies, { history: 10 });
  await limiter.hit("key", { api: 5 });
  // The first denial is kept at once, and what follows in its second together.
  for (let count = 0; count < 2; count += 1) await limiter.hit("key", { api: 1 });
  limiter[Symbol.dispose]();
  const { now, denials, key } = await asJson(command, ["why", "key"]);
  assert.deepEqual([key, now.count, now.limit, now.allowed], ["key", 5, 5, false]);
  assert.ok(now.moreAfter > 0 && now.moreAfter <= 86_400_000);
  assert.deepEqual(
    denials.map(({ times, policy, count, limit, cost }) => [times, policy, count, limit, cost]),
    [1, 1].map((times) => [times, "api", 5, 5, { api: 1 }]),
  );
  const { stdout } = await command(["why", "key"]);
  assert.match(stdout, /^allowed {4}no, retry after \d+ ms\n(.*\n)*more {7}in [\d.]+ [smh]\n/m);
  assert.match(
    stdout,
    /\n\nlast denials \(UTC\) +times +policy +count +cost +wait\n20\d\d-.* +1 +api +5 of 5 +\{"api":1\} +/,
  );

  // What counted may be over, and the denials still known.
  assert.equal((await command(["reset", "key"])).code, 0);
  const later = await asJson(command, ["why", "key"]);
  assert.deepEqual([later.now, later.denials.length], [null, 2]);
  assert.match((await command(["why", "key"])).stdout, /^Nothing counts for it now\.\n\nlast denials/);

  const { limiter: other, command: elsewhere } = fleet();
  await other.hit("key", { api: 6 });
  assert.match((await elsewhere(["why", "key"])).stdout, /\n\nNo denials are kept\.\n$/);
  const nobody = await elsewhere(["why", "nobody"]);
  assert.equal(nobody.code, 1);
  assert.match(
    nobody.stderr,
    /^tollgate why: nobody has no state, and no denials: .* under the option history\n$/,
  );
});

test("why asks a Worker for its policies and its denials", async (t) => {
  let asked;
  const server = createHttp((request, response) => {
    asked = new URL(request.url, "http://localhost");
    const decision = {
      allowed: false,
      count: 5,
      limit: 5,
      remaining: 0,
      retryAfter: 52_000,
      moreAfter: 52_000,
    };
    const story = {
      now: 4_102_444_800_000,
      policies: [
        { policy: "login", decision },
        {
          policy: "api",
          count: 1,
          decision: { ...decision, allowed: true, count: 2, retryAfter: 0, moreAfter: 0 },
        },
        { policy: "gone", error: { code: "unknown_policy", message: "it is gone" } },
      ],
      denials: [
        {
          at: 4_102_444_799_000,
          times: 340,
          rule: "POST /login",
          policy: "login",
          count: 5,
          limit: 5,
          cost: 1,
          retryAfter: 53_000,
          banned: true,
        },
      ],
    };
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(story));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const { TOLLGATE_REDIS, ...rest } = process.env;
  const TOLLGATE_URL = `http://127.0.0.1:${server.address().port}/_tollgate`;
  const env = { ...rest, TOLLGATE_URL, TOLLGATE_TOKEN: "secret" };
  const { stdout } = await tollgate(["why", "--part", "ip=192.0.2.7", "--part", "path=/a b"], { env });
  assert.equal(asked.pathname, "/_tollgate/v1/why");
  assert.deepEqual(
    [...asked.searchParams],
    [
      ["parts", "ip=192.0.2.7"],
      ["parts", "path=/a b"],
    ],
  );
  assert.equal(
    stdout,
    [
      "policy    used              now  more in",
      "login   5 of 5  denied for 52 s     52 s",
      "api     1 of 5          allowed        –",
      "gone         –       it is gone        –",
      "",
      "last denials (UTC)   times          policy         rule   count  cost  wait",
      "2099-12-31 23:59:59    340  login (banned)  POST /login  5 of 5     1  53 s",
      "",
    ].join("\n"),
  );
  const named = await tollgate(["why", "a b", "--policy", "login", "--json"], { env });
  assert.deepEqual(
    [...asked.searchParams],
    [
      ["key", "a b"],
      ["policy", "login"],
    ],
  );
  assert.equal(JSON.parse(named.stdout).denials[0].reason, "banned");
});

test("what changes a limiter needs its policies: of any key, or named", async () => {
  const { limiter, options, command } = fleet();
  const none = await command(["ban", "key", "--for", "1h"]);
  assert.equal(none.code, 1);
  assert.match(
    none.stderr,
    /^tollgate ban: Redis has no key of the limiter "default" under "test:\d+:"; there are no limiters with this prefix: use --prefix, or name the policies with --policies\n$/,
  );
  await limiter.hit("key");
  const named = await command(["ban", "key", "--for", "1h", "--name", "api"]);
  assert.equal(named.code, 1);
  assert.match(named.stderr, /; there is default: use --name/);
  const given = await command([
    "ban",
    "key",
    "--for",
    "1h",
    "--name",
    "api",
    "--policies",
    JSON.stringify(policies),
  ]);
  assert.equal(given.code, 0);
  const api = new RedisLimiter(policies, { ...options, name: "api" });
  assert.equal((await api.peek("key")).reason, "banned");
  assert.equal((await limiter.peek("key")).reason, undefined);
});

test("a key without a state, and a value that is none, are errors of one line", async () => {
  const { limiter, options, command } = fleet();
  await limiter.hit("key");
  const { redis } = setting;
  await redis.set(`${options.prefix}4:default:text`, "hello");
  await redis.lpush(`${options.prefix}4:default:list`, "hello");
  for (const [args, said] of [
    [["get", "nobody"], /nobody has no state: Redis has no test:\d+:4:default:nobody\n$/],
    [["get", "text"], /: the value is of another version\n$/],
    [["get", "list"], /: WRONGTYPE .*\n$/],
    [["ban", "key", "--for", "1x"], /: for: "1x" is not a duration/],
    [["ban", "key", "--for", "1h", "--policy", "bann"], /: policy: "bann" is not/],
  ]) {
    const { code, stdout, stderr } = await command(args);
    assert.match(stderr, said);
    assert.equal(stderr.split("\n").length, 2);
    assert.deepEqual([code, stdout], [1, ""]);
  }
  const usage = await command(["ban", "key"]);
  assert.deepEqual(
    [usage.code, usage.stderr],
    [2, "tollgate ban: --for is required (tollgate ban --help)\n"],
  );
});

test("it logs in with a user and a password, and selects a database", async () => {
  const server = await startServer({ args: ["--requirepass", "se%cret", "--databases", "4"] });
  try {
    const { command } = fleet();
    const at = (login, rest = "") => ({ TOLLGATE_REDIS: `redis://${login}127.0.0.1:${server.port}${rest}` });
    const ban = ["ban", "key", "--for", "1h", "--policies", JSON.stringify(policies)];
    assert.equal((await command(ban, at(":se%25cret@"))).code, 0);
    assert.equal((await command(["get", "key"], at("default:se%25cret@"))).code, 0);
    assert.match((await command(["get", "key"], at(":se%25cret@", "/3"))).stderr, /key has no state/);
    for (const [over, said] of [
      [at(""), /: 127\.0\.0\.1:\d+ requires a password: redis:\/\/user:password@127/],
      [at(":wrong@"), /: 127\.0\.0\.1:\d+ rejected the user or the password\n/],
      [at(":se%25cret@", "/4"), /: 127\.0\.0\.1:\d+ has no database 4\n/],
    ]) {
      const { code, stderr } = await command(["get", "key"], over);
      assert.match(stderr, said);
      assert.deepEqual([code, stderr.split("\n").length], [1, 2]);
      assert.ok(!stderr.includes("se%"));
    }
  } finally {
    await server.stop();
  }
});

test("it speaks TLS, and checks the certificate", async (t) => {
  const { limiter, command } = fleet();
  await limiter.hit("key");
  const pem = (name) => readFileSync(inProject(`tests/cli/fixtures/tls-${name}.pem`));
  const proxy = createTls({ key: pem("key"), cert: pem("certificate") }, (socket) => {
    const redis = connectPlain(setting.server.port, "127.0.0.1");
    for (const each of [socket, redis]) each.on("error", () => {});
    socket.pipe(redis).pipe(socket);
  });
  proxy.on("tlsClientError", () => {});
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  t.after(() => proxy.close());
  const at = (protocol) => ({ TOLLGATE_REDIS: `${protocol}://127.0.0.1:${proxy.address().port}` });
  const trusted = { NODE_EXTRA_CA_CERTS: inProject("tests/cli/fixtures/tls-certificate.pem") };
  assert.equal((await command(["get", "key"], { ...at("rediss"), ...trusted })).code, 0);
  assert.match(
    (await command(["get", "key"], at("rediss"))).stderr,
    /cannot be reached: self-signed certificate/,
  );
  assert.equal((await command(["get", "key"], at("redis"))).code, 1);
});

test("what is not a Redis, or nothing, is an error of one line", async (t) => {
  const { command } = fleet();
  const http = createHttp();
  const silent = createServer();
  for (const server of [http, silent]) {
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close());
  }
  const port = (server) => server.address().port;
  for (const [address, said, args = []] of [
    ["redis://127.0.0.1:1", /: 127\.0\.0\.1:1 refused the connection; is Redis there\?\n$/],
    ["redis://no-such-host.invalid", /: the host no-such-host\.invalid is not known\n$/],
    [
      `redis://127.0.0.1:${port(http)}`,
      /: 127\.0\.0\.1:\d+ is not a Redis: it replied "HTTP\/1\.1 400 Bad Request"\n$/,
    ],
  ]) {
    const { code, stderr } = await command(["get", "key", ...args], { TOLLGATE_REDIS: address });
    assert.match(stderr, said);
    assert.deepEqual([code, stderr.split("\n").length], [1, 2]);
  }
  const { TOLLGATE_REDIS, ...env } = process.env;
  const late = await tollgate(
    ["get", "key", "--timeout", "50", "--redis", `redis://127.0.0.1:${port(silent)}`],
    { env },
  );
  assert.match(late.stderr, /: 127\.0\.0\.1:\d+ did not reply in 50 ms\n$/);
  assert.equal(late.code, 1);
});

test("an address that is none is an error of the command line, which does not show it", async (t) => {
  const at = folderWith(t, {});
  const { TOLLGATE_URL, TOLLGATE_REDIS, ...env } = process.env;
  for (const [address, said] of [
    ["localhost:6379", /--redis is not an address such as redis:/],
    ["https://user:secret@localhost", /--redis is not an address such as redis:/],
    ["redis://user:secret@localhost/cache", /--redis: only the number of a database may follow the host/],
    ["redis://user:sec%ret@localhost/0", /--redis: write a % in the user or password as %25/],
  ]) {
    const { code, stderr } = await tollgate(["get", "key", "--redis", address], { env, cwd: at("") });
    assert.match(stderr, said);
    assert.ok(!stderr.includes("secret"));
    assert.equal(code, 2);
  }
});

test("in a Cluster it follows the keys to their nodes, and top goes through all nodes", async () => {
  const cluster = await startCluster();
  const [{ server }] = cluster.nodes;
  const client = new Cluster([{ host: "127.0.0.1", port: server.port }], { slotsRefreshTimeout: 60_000 });
  try {
    await once(client, "ready");
    const limiter = new RedisLimiter(policies, { client, timeout: "20s" });
    const keys = Array.from({ length: 12 }, (_, number) => `key${number}`);
    for (const key of keys) await limiter.hit(key);
    const { TOLLGATE_URL, ...env } = process.env;
    const TOLLGATE_REDIS = `redis://127.0.0.1:${server.port}`;
    const command = (args) => tollgate([...args, "--timeout", "20000"], { env: { ...env, TOLLGATE_REDIS } });
    for (const key of keys) assert.equal((await asJson(command, ["reset", key])).reset, true);
    assert.equal((await asJson(command, ["ban", "stranger", "--for", "1h"])).key, "stranger");
    assert.equal((await limiter.hit("stranger")).reason, "banned");
    for (const key of keys) await limiter.hit(key);
    const top = await asJson(command, ["top", "--once", "--interval", "200"]);
    assert.deepEqual([top.isComplete, top.keys.length, top.keysInRedis], [true, 13, 13]);
  } finally {
    client.disconnect();
    await cluster.stop();
  }
});

const free = { algorithm: "fix_window", limit: 5, scale: "1d", name: "api" };
const pro = { ...free, limit: 100 };

test("get, why and top show the limit of the key's plan, also once its log was folded", async () => {
  const { limiter, command } = fleet([{ ...free, limit: 50 }]);
  for (const hits of [3, 40]) {
    for (let count = 0; count < hits; count += 1) await limiter.hit("pro:1", 1, [pro]);
    const { count, limit, remaining, policies } = await asJson(command, ["get", "pro:1"]);
    assert.deepEqual([count, limit, remaining, policies[0].limit], [count, 100, 100 - count, 100]);
    const { now } = await asJson(command, ["why", "pro:1"]);
    assert.deepEqual([now.limit, now.remaining], [100, 100 - count]);
    const { keys, groups } = await asJson(command, ["top", "--once", "--interval", "200"]);
    assert.deepEqual([keys[0].used, keys[0].limit], [count, 100]);
    assert.match(groups[0].policies, /100 in 1d/);
  }
  // A hit without a plan is under the limiter's own again.
  await limiter.hit("pro:1");
  assert.equal((await asJson(command, ["get", "pro:1"])).limit, 50);
});

test("--policies has effect on what get and why show", async () => {
  const { limiter, command } = fleet([free]);
  for (let count = 0; count < 3; count += 1) await limiter.hit("a");
  const given = JSON.stringify({ ...free, limit: 7 });
  const { limit, remaining } = await asJson(command, ["get", "a", "--policies", given]);
  assert.deepEqual([limit, remaining], [7, 4]);
  assert.equal((await asJson(command, ["why", "a", "--policies", given])).now.limit, 7);
  const { code, stderr } = await command([
    "get",
    "a",
    "--policies",
    '{"algorithm":"fix_window","limit":0,"scale":1}',
  ]);
  assert.match(stderr, /^tollgate get: --policies: limit: 0 is not an integer from 1/);
  assert.equal(code, 2);
});

const strikes = { algorithm: "ban", after: 3, scale: "1h", for: "1h", name: "strikes" };
const abuse = { algorithm: "ban", after: 5, scale: "1h", for: "2h", name: "abuse" };

test("a ban is shown with its own end and no limit, until it is lifted", async () => {
  const { limiter, command } = fleet([free, strikes, abuse]);
  await limiter.ban("a", "1h", "strikes");
  const longest = await limiter.ban("a", "2h", "abuse");
  const { limit, remaining, bannedUntil, policies } = await asJson(command, ["get", "a"]);
  assert.deepEqual([limit, remaining], [5, 0]);
  assert.ok(Math.abs(bannedUntil - longest) < 5);
  const ends = policies.map(({ policy, bannedUntil }) => [policy, bannedUntil > 0]);
  assert.deepEqual(ends, [
    ["api", false],
    ["strikes", true],
    ["abuse", true],
  ]);
  assert.match(
    (await command(["get", "a"])).stdout,
    /^strikes {4}banned until 20.*\nabuse {6}banned until 20/m,
  );
  const lifted = await command(["unban", "a", "--policy", "abuse"]);
  assert.match(lifted.stdout, /^a is not banned by abuse any more\. strikes bans it until 20.* UTC\.\n$/);
  const again = await command(["unban", "a", "--policy", "abuse"]);
  assert.match(again.stdout, /^a was not banned by abuse\. strikes bans it until 20.* UTC\.\n$/);
  const wrong = await command(["unban", "a", "--policy", "api"]);
  assert.match(wrong.stderr, /^tollgate unban: [^\n]*api[^\n]*ban[^\n]*\n$/);
  assert.equal(wrong.code, 1);
  assert.match((await command(["unban", "a", "--policy", "strikes"])).stdout, /any more\.\n$/);
  const after = await asJson(command, ["get", "a"]).catch((error) => error);
  assert.ok(!(after.bannedUntil > 0));
});

test("a key under a ban alone has denials and no limit", async () => {
  const { limiter, command } = fleet([strikes]);
  await limiter.ban("a", "1h");
  const { stdout } = await command(["get", "a"]);
  assert.match(stdout, /^denials {4}0 of 3\nallowed {4}no, retry after \d+ ms\n/);
  assert.doesNotMatch(stdout + (await command(["why", "a"])).stdout, /9,?007,?199/);
});

test("--ip is the key that a guard makes of an address", async () => {
  const { limiter, command } = fleet([free]);
  await limiter.hit("2001:0db8:0001:0002::/64");
  await limiter.hit("192.0.2.7");
  for (const address of ["2001:db8:1:2::99", "2001:DB8:1:2:3:4:5:6"])
    assert.equal((await asJson(command, ["get", "--ip", address])).count, 1);
  assert.equal((await asJson(command, ["get", "--ip", "::ffff:192.0.2.7"])).count, 1);
  assert.equal(
    (await command(["reset", "--ip", "2001:db8:1:2::1"])).stdout,
    "2001:0db8:0001:0002::/64 was reset.\n",
  );
  assert.match(
    (await command(["except", "--ip", "192.0.2.7", "limit=9", "--for", "1h"])).stdout,
    /^192\.0\.2\.7 has the exception/,
  );
});
