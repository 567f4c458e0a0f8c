// `tollgate exceptions` lists every key of a Redis that has an exception, with the note of who set it.

import assert from "node:assert/strict";
import test from "node:test";
import { RedisLimiter } from "tollgate/redis";
import { withServer } from "../redis/lib/setting.mjs";
import { tollgate } from "./lib/tollgate.mjs";

const setting = withServer();
const policy = { algorithm: "fix_window", limit: 5, scale: "1d", name: "api" };

function fleet() {
  const options = setting.options({ restore: true });
  const { TOLLGATE_URL, ...env } = process.env;
  const command = (...args) =>
    tollgate([...args, "--prefix", options.prefix, "--timeout", "20000"], {
      env: { ...env, TOLLGATE_REDIS: `redis://127.0.0.1:${setting.server.port}` },
    });
  const limiter = (name) => new RedisLimiter(policy, { ...options, ...(name && { name }) });
  const listed = async (...args) => {
    const { code, stdout, stderr } = await command("exceptions", "--json", ...args);
    assert.deepEqual([code, stderr], [0, ""]);
    return JSON.parse(stdout);
  };
  return { command, limiter, listed, options };
}

test("all exceptions of all limiters, those that end first before the others", async () => {
  const { limiter, listed, command } = fleet();
  const [one, other] = [limiter(), limiter("login")];
  assert.deepEqual((await listed()).exceptions, []);
  assert.match((await command("exceptions")).stdout, /^No key has an exception\.\n$/);
  for (let key = 0; key < 30; key += 1) await one.hit(`user:${key}`);
  const late = await one.except("user:7", { limit: 50 }, { for: "3d" });
  const soon = await other.except("192.0.2.1", { deny: true }, { for: "1h" });
  const { exceptions, isComplete } = await listed();
  assert.deepEqual(exceptions, [
    { limiter: "login", key: "192.0.2.1", exception: { until: soon, deny: true } },
    { limiter: "default", key: "user:7", exception: { until: late, policies: { api: { limit: 50 } } } },
  ]);
  assert.equal(isComplete, true);
  assert.deepEqual(
    (await listed("--name", "login")).exceptions.map(({ key }) => key),
    ["192.0.2.1"],
  );
  const { stdout } = await command("exceptions");
  assert.match(stdout, /^key +limiter +exception +until \(UTC\) +note$/m);
  assert.match(stdout, /^user:7 +default +api\.limit=50 +20\d\d-/m);
  await one.except("user:7", null);
  assert.deepEqual(
    (await listed()).exceptions.map(({ key }) => key),
    ["192.0.2.1"],
  );
});

test("a note stays with the exception that it was given to", async () => {
  const { limiter, listed, command } = fleet();
  const own = limiter();
  await own.hit("a");
  const note = async () => (await listed()).exceptions[0]?.note;
  const set = async (...args) => assert.equal((await command("except", "a", ...args)).code, 0);
  await set("limit=9", "--for", "1h", "--note", "Ann, ticket 42: migration");
  assert.equal(await note(), "Ann, ticket 42: migration");
  assert.match(
    (await command("except", "a")).stdout,
    /^a has api\.limit=9 until .* UTC\. Ann, ticket 42: migration\n$/,
  );
  assert.match((await command("exceptions")).stdout, /Ann, ticket 42: migration\n$/);
  // Another one replaces it, by the command or by a process, and has no note of Ann's.
  await set("limit=10", "--for", "2h");
  assert.equal(await note(), undefined);
  await set("limit=11", "--for", "3h", "--note", "Bob");
  await own.except("a", { limit: 12 }, { for: "4h" });
  assert.equal(await note(), undefined);
  await set("--allow", "--for", "1h", "--note", "Eve");
  await set("--lift");
  assert.deepEqual((await listed()).exceptions, []);
  await own.except("a", { limit: 12 }, { for: "4h" });
  assert.equal(await note(), undefined);
});

test("a note ends with its exception", async () => {
  const { limiter, command, options } = fleet();
  await limiter().hit("a");
  await command("except", "a", "limit=9", "--for", "1h", "--note", "Ann");
  const client = setting.server.client ?? options.client;
  const [name] = (await client.keys(`${options.prefix}note:*`)) ?? [];
  const left = await client.pttl(name);
  assert.ok(left > 3_500_000 && left <= 3_600_000, String(left));
});

test("a scan has a bound, and says so", async () => {
  const { limiter, listed, command } = fleet();
  const own = limiter();
  await Promise.all(Array.from({ length: 3_000 }, (_, key) => own.hit(`user:${key}`)));
  assert.equal((await listed("--scan", "1000")).isComplete, false);
  assert.match(
    (await command("exceptions", "--scan", "1000")).stdout,
    /Only [\d,]+ keys of Redis were looked at; see --scan\./,
  );
});

for (const [args, said] of [
  [["exceptions", "a", "--redis", "redis://localhost"], /name no key; tollgate except shows that of one/],
  [
    ["exceptions", "--url", "https://limits.example.com"],
    /the objects of a Worker cannot be listed; use --redis/,
  ],
  [
    ["except", "a", "--note", "Ann", "--redis", "redis://localhost"],
    /--note needs --allow, --deny or a number/,
  ],
  [
    [
      "except",
      "a",
      "--allow",
      "--for",
      "1h",
      "--note",
      "Ann",
      "--url",
      "http://127.0.0.1:1",
      "--policy",
      "api",
    ],
    /--note is for Redis/,
  ],
])
  test(`tollgate ${args.join(" ")}: an error of the command line`, async () => {
    const { TOLLGATE_URL, TOLLGATE_REDIS, ...env } = process.env;
    const { code, stderr } = await tollgate(args, { env: { ...env, TOLLGATE_TOKEN: "secret" } });
    assert.match(stderr, said);
    assert.equal(code, 2);
  });
