// `tollgate replay --config` applies the rules of the gateway as the gateway does.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as rust from "../../build/worker/tollgate.js";
import { RateLimiter } from "../../dist/node.js";
import { inProject } from "../../scripts/lib/paths.mjs";
import { seeded } from "../../www/traffic/random.js";
import { comparable } from "./lib/loop.mjs";
import { folderWith, replay, tollgate } from "./lib/tollgate.mjs";
import { commonTime } from "./lib/traffic.mjs";

const start = Date.UTC(2026, 9, 10);

const bindings = `
[[durable_objects.bindings]]
name = "LIMITERS"
class_name = "RateLimiterObject"
`;

const line = ([second, ip, request, user = "-"]) =>
  `${ip} - ${user} [${commonTime(start + second * 1_000)}] "${request} HTTP/1.1" 200 1 "-" "-"\n`;

async function under(t, table, requests, ...args) {
  const at = folderWith(t, { "wrangler.toml": table + bindings, log: requests.map(line).join("") });
  return replay([at("log"), "--config", at("wrangler.toml"), ...args]);
}

const login = `
[vars.TOLLGATE]
upstream = "https://origin.example"

[vars.TOLLGATE.policies]
login = { algorithm = "sliding_window", limit = 2, scale = "1m" }
api = { algorithm = "fix_window", limit = 3, scale = "1m" }

[[vars.TOLLGATE.rules]]
method = "POST"
path = "/login"
policies = ["login"]

[[vars.TOLLGATE.rules]]
path = "/api/*"
key = ["header:Authorization"]
policies = ["api"]
cost = 2

[[vars.TOLLGATE.rules]]
path = "/seen/*"
key = ["path"]
policies = ["login"]
mode = "shadow"
`;

test("rules are the gateway's: method, path in any reading, key, cost and mode", async (t) => {
  const { candidates, unreadable } = await under(t, login, [
    [0, "192.0.2.1", "POST /login"],
    [1, "192.0.2.1", "POST /Login"],
    [2, "192.0.2.1", "POST /x/../%6Cogin?a=1"],
    [3, "192.0.2.2", "POST /login"],
    [4, "192.0.2.1", "GET /login"],
    [5, "192.0.2.1", "GET /api/a", "ann"],
    [6, "192.0.2.2", "GET /api/b", "ann"],
    [7, "192.0.2.2", "GET /api/b", "bob"],
    [8, "192.0.2.2", "GET /api/b"],
    [9, "192.0.2.3", "GET /seen/it"],
    [10, "192.0.2.3", "GET /seen/it"],
    [11, "192.0.2.3", "GET /seen/it"],
    [62, "192.0.2.1", "POST /login"],
  ]);
  assert.equal(unreadable.count, 0);
  const [{ hits, allowed, denied, unlimited, rules, worst, keys }] = candidates;
  assert.deepEqual({ hits, allowed, denied, unlimited }, { hits: 13, allowed: 11, denied: 2, unlimited: 1 });
  assert.deepEqual(rules, [
    { rule: 0, name: "POST /login", hits: 5, denied: 1, shadow: false },
    { rule: 1, name: "/api/*", hits: 4, denied: 1, shadow: false },
    { rule: 2, name: "/seen/*", hits: 3, denied: 1, shadow: true },
  ]);
  // Who has no such header is counted by the address: in the same object, under another policy.
  assert.equal(keys, 4);
  assert.deepEqual(
    worst.map(({ samples }) => samples.paths.most[0].text),
    ["/x/../%6Cogin", "/api/b"],
  );
  assert.deepEqual(comparable({ worst }).worst, [
    { key: "ip 192.0.2.1", hits: 4, denied: 1, longestWait: 58_000 },
    { key: "header:authorization user ann", hits: 2, denied: 1, longestWait: 54_000 },
  ]);
});

/** Asks the gateway about every request, and a limiter for every question. */
function looped(table, requests) {
  rust.initSync({ module: readFileSync(inProject("build/worker/tollgate_bg.wasm")) });
  const gateway = new rust.Gateway(JSON.stringify(table));
  let now = 0;
  const limiter = ({ policies }) => new RateLimiter(JSON.parse(policies), { clock: () => now });
  const limiters = gateway.sets().map(limiter);
  const limits = gateway.limits();
  let denied = 0;
  const ofRules = limits.map(() => [0, 0]);
  for (const { time, method, path, ...headers } of requests) {
    now = time;
    const get = (name) => headers[name === "cf-connecting-ip" ? "ip" : name];
    const plan = gateway.plan(method, new URL(path, "http://localhost").pathname, false, { get }) ?? "";
    const count = (rule, isDenied) => {
      ofRules[rule][0] += 1;
      ofRules[rule][1] += Number(isDenied);
      return isDenied;
    };
    if (/^\d+$/.test(plan)) denied += Number(count(Number(plan), true));
    else
      for (const line of plan === "" ? [] : plan.split("\n")) {
        const [limit, cost, object] = /^(\d+) (\d+) (.*)$/.exec(line).slice(1);
        const { rule, set } = limits[Number(limit)];
        if (!count(rule, !limiters[set].hit(object, Number(cost)).allowed)) continue;
        denied += 1;
        break;
      }
  }
  return { denied, ofRules };
}

test("they decide as in a plain loop over the gateway and its limiters, whatever is remembered", async (t) => {
  const policies = ["a", "b", "c", "d", "e"].map((name, at) => [
    name,
    { algorithm: "sliding_window", limit: 3 + at, scale: "1m" },
  ]);
  const rules = [
    { method: "POST", path: "/login", policies: "a" },
    { path: "/own/*", key: ["path", "ip"], policies: "b" },
    { path: "/api/*", key: ["header:X-Api-Key"], missing: "deny", policies: "c", cost: 2 },
    { path: "/in/*", key: ["cookie:id"], policies: "d" },
    { path: "/*", key: ["header:Authorization"], policies: "e" },
  ];
  const random = seeded(3);
  const one = (list) => list[Math.floor(random() * list.length)];
  const paths = [
    "/login",
    "/Login/",
    "/own/a",
    "/own/b",
    "/api/x",
    "/api/%2e%2e/login",
    "/",
    "/other;x",
    "/a//b",
  ];
  const requests = (withCookies) =>
    Array.from({ length: 4_000 }, (_, at) => ({
      time: start + at * 400,
      method: one(["GET", "POST", "OPTIONS"]),
      path: one(withCookies ? [...paths, "/in/x"] : paths),
      ip: one(["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"]),
      "x-api-key": one(["k", "l", undefined]),
      authorization: one(["Bearer x", "bearer  x", undefined]),
      upgrade: one([undefined, undefined, "websocket"]),
      cookie: withCookies ? one(["id=1", "id=2", undefined]) : undefined,
    }));
  for (const withCookies of [false, true]) {
    const hits = requests(withCookies);
    const table = { upstream: "https://origin.example", policies: Object.fromEntries(policies), rules };
    const at = folderWith(t, {
      "wrangler.json": JSON.stringify({
        vars: { TOLLGATE: table },
        durable_objects: { bindings: [{ name: "LIMITERS", class_name: "RateLimiterObject" }] },
      }),
      log: hits.map((hit) => JSON.stringify(hit)).join("\n"),
    });
    const { candidates } = await replay([at("log"), "--config", at("wrangler.json")]);
    const { denied, ofRules } = looped(table, hits);
    assert.equal(candidates[0].denied, denied);
    assert.deepEqual(
      candidates[0].rules.map(({ hits, denied }) => [hits, denied]),
      ofRules,
    );
    const asked = withCookies ? ofRules : ofRules.toSpliced(3, 1);
    for (const [all, some] of asked) assert.ok(all > some && some > 0);
  }
});

test("a policy has one budget in an object, alone and with others, and denied hits are free there", async (t) => {
  const table = `
[vars.TOLLGATE]
upstream = "https://origin.example"

[vars.TOLLGATE.policies]
short = { algorithm = "fix_window", limit = 2, scale = "10s" }
long = { algorithm = "fix_window", limit = 5, scale = "1m" }

[[vars.TOLLGATE.rules]]
path = "/both"
policies = ["short", "long"]

[[vars.TOLLGATE.rules]]
path = "/*"
policies = ["long"]
`;
  const requests = Array.from({ length: 60 }, (_, at) => [
    at,
    "192.0.2.1",
    `GET ${at % 2 ? "/other" : "/both"}`,
  ]);
  const { candidates } = await under(t, table, requests);
  // One limiter with both policies would count /other under both; two would have two budgets for "long".
  let now = 0;
  const long = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1m" }, { clock: () => now });
  const short = new RateLimiter({ algorithm: "fix_window", limit: 2, scale: "10s" }, { clock: () => now });
  let allowed = 0;
  for (const [second, , request] of requests) {
    now = start + second * 1_000;
    const limiters = request === "GET /both" ? [short, long] : [long];
    if (!limiters.every((limiter) => limiter.peek("a").allowed)) continue;
    for (const limiter of limiters) limiter.hit("a");
    allowed += 1;
  }
  assert.equal(candidates[0].allowed, allowed);
  assert.ok(allowed > 0 && allowed < 60);
});

test("a rule with limits on several keys takes from all of them or from none", async (t) => {
  const table = `
[vars.TOLLGATE]
upstream = "https://origin.example"

[vars.TOLLGATE.policies]
address = { algorithm = "fix_window", limit = 4, scale = "1m" }
user = { algorithm = "fix_window", limit = 2, scale = "1m" }

[[vars.TOLLGATE.rules]]
path = "/health"
mode = "skip"

[[vars.TOLLGATE.rules]]
path = "/*"
limits = [{ key = "ip", policies = "address" }, { key = "header:Authorization", policies = "user" }]
`;
  const { candidates } = await under(t, table, [
    ...Array.from({ length: 5 }, (_, at) => [at, "192.0.2.1", "GET /", "ann"]),
    ...Array.from({ length: 3 }, (_, at) => [5 + at, "192.0.2.1", "GET /", "bob"]),
    [8, "192.0.2.1", "GET /", "cid"],
    [9, "192.0.2.1", "GET /health"],
  ]);
  const [{ hits, allowed, denied, unlimited, rules }] = candidates;
  assert.deepEqual({ hits, allowed, denied, unlimited }, { hits: 10, allowed: 5, denied: 5, unlimited: 1 });
  assert.deepEqual(
    rules.map(({ hits, denied }) => [hits, denied]),
    [
      [0, 0],
      [9, 5],
    ],
  );
});

test("newKeys: an address brings so many keys that were never used, and each is new once in its period", async (t) => {
  const table = `
[vars.TOLLGATE]
upstream = "https://origin.example"

[vars.TOLLGATE.policies]
api = { algorithm = "fix_window", limit = 2, scale = "1m" }

[[vars.TOLLGATE.rules]]
path = "/api/*"
key = ["header:Authorization"]
policies = ["api"]
newKeys = { limit = 3, scale = "1h" }
`;
  const hit = (second, user, address = 1) => [second, `192.0.2.${address}`, "GET /api/a", user];
  const requests = [
    ...["a", "b", "c", "d", "e"].map((user, second) => hit(second, user)),
    // A known key is not counted again, nor is one that its own policy denies.
    ...[10, 11].map((second) => hit(second, "a")),
    hit(12, "f", 2),
    hit(13, "f", 1),
    hit(14, "g", 2),
    // Half an hour later its state has ended, but it is not new.
    hit(1_800, "a"),
    hit(1_801, "h"),
    // In the next hour it is, and counts.
    hit(5_000, "a"),
    hit(5_001, "i"),
    hit(5_002, "k"),
  ];
  const { candidates } = await under(t, table, requests);
  const [{ hits, denied, rules, newKeys }] = candidates;
  assert.deepEqual({ hits, denied }, { hits: 15, denied: 6 });
  assert.deepEqual(newKeys, {
    denied: 5,
    addresses: 1,
    worst: [{ address: "new-keys 192.0.2.1", denied: 5 }],
  });
  assert.deepEqual(rules, [{ rule: 0, name: "/api/*", hits: 15, denied: 6, shadow: false }]);
  const at = folderWith(t, { "wrangler.toml": table + bindings, log: requests.map(line).join("") });
  const { stdout } = await tollgate(["replay", at("log"), "--config", at("wrangler.toml")]);
  assert.match(stdout, /5 hits denied for too many new keys of 1 address: new-keys 192\.0\.2\.1 \(5\)\./);
});

test("requests without a key are denied where the rule says so", async (t) => {
  const table = login.replace('key = ["header:Authorization"]', '$&\nmissing = "deny"');
  const { candidates } = await under(t, table, [
    [0, "192.0.2.1", "GET /api/a", "ann"],
    [1, "192.0.2.1", "GET /api/a"],
  ]);
  const [{ allowed, denied, refused }] = candidates;
  assert.deepEqual([allowed, denied, refused], [1, 1, 1]);
});

test("without a policy no line needs another key than its rule's", async (t) => {
  const at = folderWith(t, {
    "wrangler.toml": login + bindings,
    log: `{"time":${start},"method":"POST","path":"/login"}\n`.repeat(3),
  });
  const args = [at("log"), "--config", at("wrangler.toml")];
  const { candidates, withoutKey, key } = await replay(args);
  assert.deepEqual([withoutKey.count, key], [0, []]);
  assert.deepEqual([candidates[0].hits, candidates[0].denied], [3, 1]);
  const beside = await replay([...args, "--policy", "login"]);
  assert.deepEqual(
    [beside.withoutKey.count, beside.candidates[0].hits, beside.candidates[1].hits],
    [3, 3, 0],
  );
  const misspelt = await tollgate(["replay", ...args, "--policy", "login", "--key", "acount"]);
  assert.equal(misspelt.code, 1);
  assert.match(misspelt.stderr, /no line has the field "acount"; the fields are time, method, path\n$/);
});

test("headers of a rule's key are fields of JSON lines", async (t) => {
  const at = folderWith(t, {
    "wrangler.toml": login.replace("header:Authorization", "header:X-Api-Key") + bindings,
    log: ["a", "b", "b"]
      .map((key, second) =>
        JSON.stringify({
          time: start + second,
          req: { method: "GET", url: "/api/x?y", remoteAddress: "192.0.2.1", headers: { "x-api-key": key } },
        }),
      )
      .join("\n"),
  });
  const { candidates } = await replay([at("log"), "--config", at("wrangler.toml")]);
  assert.deepEqual([candidates[0].keys, candidates[0].denied], [2, 1]);
});

test("a policy of a configuration is named, beside its rules or without any", async (t) => {
  const withoutRules = login.slice(0, login.indexOf("\n[[")).replace(/^upstream.*$/m, "");
  const requests = Array.from({ length: 4 }, (_, at) => [at, "192.0.2.1", "GET /"]);
  const { candidates } = await under(t, withoutRules, requests, "--policy", "login");
  assert.deepEqual(
    candidates.map(({ name, denied }) => [name, denied]),
    [["login: sliding_window, 2 in 1m", 2]],
  );
  assert.equal((await under(t, login, requests, "--policy", "login")).candidates.length, 2);

  const at = folderWith(t, { "wrangler.toml": withoutRules + bindings });
  const { code, stderr } = await tollgate(["replay", "--config", at("wrangler.toml")]);
  assert.equal(code, 2);
  assert.match(stderr, /wrangler\.toml has no rules; name a policy of it: --policy login/);
});

test("a configuration with errors is not replayed", async (t) => {
  const at = folderWith(t, { "wrangler.toml": login.replace("limit = 2", "limit = 0") + bindings });
  const { code, stderr } = await tollgate(["replay", "--config", at("wrangler.toml")]);
  assert.equal(code, 1);
  assert.match(stderr, /wrangler\.toml:6: vars\.TOLLGATE\.policies\.login\.limit: .*tollgate check/);
});
