// `limits`: several keys of a request are one decision, over memory, Redis and stores: all are charged, or none.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import Fastify from "fastify";
import { RateLimiter } from "tollgate";
import { rateLimit } from "tollgate/fastify";
import { RedisLimiter } from "tollgate/redis";
import { StoreLimiter } from "tollgate/store";
import { connect, startServer } from "../redis/lib/server.mjs";
import { memoryStore } from "../store/lib/stores.mjs";
import { ask } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf, start } from "./lib/limits.mjs";

const user = (framework) => (request) => framework.header(request, "X-User");
const team = (framework) => (request) => framework.header(request, "X-Team");
const as = (user, team = "none") => ({ headers: { "X-User": user, "X-Team": team } });

for (const [name, framework] of Object.entries(frameworks)) {
  const serve = (t, options, handler) => served(t, framework, { "/": { guards: [options], handler } });

  describe(name, () => {
    test("a denial of one charges none, and headers tell of all", async (t) => {
      const [users, teams] = [limiterOf(policyOf(2, "user")), limiterOf(policyOf(3, "team"))];
      const url = await serve(t, {
        limits: [
          { key: user(framework), limiter: users },
          { key: team(framework), limiter: teams, cost: () => 1 },
        ],
      });
      const first = await ask(url, as("ann", "red"));
      assert.deepEqual(
        [first.status, first.headers["ratelimit-policy"], first.headers.ratelimit],
        [200, '"user";q=2;w=60, "team";q=3;w=60', '"user";r=1;t=60'],
      );
      assert.equal((await ask(url, as("ann", "red"))).status, 200);
      const denied = await ask(url, as("ann", "red"));
      assert.deepEqual([denied.status, JSON.parse(denied.body)["violated-policies"]], [429, ["user"]]);
      assert.deepEqual([users.get("ann"), teams.get("red")], [2, 2]);
      assert.equal((await ask(url, as("bob", "red"))).status, 200);
      const full = await ask(url, as("bob", "red"));
      assert.deepEqual([full.status, JSON.parse(full.body)["violated-policies"]], [429, ["team"]]);
      assert.deepEqual([users.get("bob"), teams.get("red")], [1, 3]);
    });

    test("policies in memory, with the client's address as a key", async (t) => {
      const url = await serve(t, {
        limits: [{ policy: policyOf(2, "address") }, { key: user(framework), policy: policyOf(1, "user") }],
      });
      const statuses = [];
      for (const name of ["ann", "ann", "bob", "cleo"]) statuses.push((await ask(url, as(name))).status);
      assert.deepEqual(statuses, [200, 429, 200, 429]);
    });

    test("charge: failures reserves all, and settles or gives back all", async (t) => {
      const [users, teams] = [limiterOf(policyOf(2, "user")), limiterOf(policyOf(5, "team"))];
      let status = 401;
      const url = await serve(
        t,
        {
          limits: [
            { key: user(framework), limiter: users },
            { key: team(framework), limiter: teams },
          ],
          charge: "failures",
        },
        () => ({ status }),
      );
      const charged = async (...expected) => {
        while ([users.get("ann"), teams.get("red")].join() !== expected.join())
          await new Promise(setImmediate);
      };
      await ask(url, as("ann", "red"));
      await charged(1, 1);
      status = 200;
      await ask(url, as("ann", "red"));
      await charged(1, 1);
      status = 401;
      await ask(url, as("ann", "red"));
      await charged(2, 2);
      assert.equal((await ask(url, as("ann", "red"))).status, 429);
      await charged(2, 2);
    });

    test("an invalid key of any limit is a 400, and charges none", async (t) => {
      const limiter = limiterOf(policyOf(2, "user"));
      const url = await serve(t, {
        limits: [
          { key: () => "ann", limiter },
          { key: team(framework), policy: policyOf(5, "team") },
        ],
      });
      assert.equal((await ask(url)).status, 400);
      assert.equal(limiter.size, 0);
    });

    test("wrong options are errors when the guard is made", () => {
      const wrong = (options, message) =>
        assert.throws(() => framework.rateLimit(options, () => {}), { name: "TollgateError", message });
      const policy = policyOf(1);
      wrong({ limits: [] }, /^limits: .* use a list such as \[\{ key, policy \}/);
      wrong({ limits: [5] }, /^limits: 5 is not accepted; use objects/);
      wrong({ limits: [{ policy, name: "a" }] }, /^limits: "name" is not accepted; use one of key, policy/);
      wrong({ limits: [{}] }, /^policy: undefined is not accepted/);
      wrong({ limits: [{ policy, key: "ann" }] }, /^key: "ann" is not accepted; use a function/);
      wrong({ limits: [{ policy }, { policy }] }, /^limits: "api" is not accepted; use another name/);
      wrong({ limits: [{ policy, limiter: limiterOf(policy) }] }, /^policy is not accepted beside a limiter/);
      wrong({ limits: [{ limiter: { hit() {} } }] }, /^limiter: .* use a RateLimiter, RedisLimiter/);
      wrong({ limits: [{ policy }], policy }, /^policy is not accepted beside limits; use it in each/);
      wrong(
        { limits: [{ policy }], ban: { after: 5, scale: "1m", for: "1h" } },
        /^ban is not accepted beside/,
      );
      const store = new StoreLimiter(policyOf(1, "b"), { store: memoryStore(Date.now) });
      wrong({ limits: [{ policy }, { limiter: store }] }, /^limiter is not accepted in memory beside one/);
    });
  });
}

test("over Redis and over a store of one's own, of a load at once exactly the limit passes", {
  timeout: 120_000,
}, async (t) => {
  const server = await startServer();
  const client = connect(server.port);
  t.after(async () => {
    client.disconnect();
    await server.stop();
  });
  const store = memoryStore(() => start);
  const kinds = {
    redis: (policy) =>
      new RedisLimiter({ ...policy, scale: "1d" }, { client, name: policy.name, timeout: "20s" }),
    store: (policy) => new StoreLimiter(policy, { store, prefix: `${policy.name}:`, clock: () => start }),
  };
  for (const [kind, make] of Object.entries(kinds)) {
    const [users, teams] = [make(policyOf(9, "user")), make(policyOf(4, "team"))];
    const limits = [
      { key: user(frameworks.express), limiter: users },
      { key: team(frameworks.express), limiter: teams },
    ];
    const url = await served(t, frameworks.express, { "/": { guards: [{ limits, timeout: 60_000 }] } });
    const responses = [];
    for (let count = 0; count < 9; count += 1) responses.push(await ask(url, as("ann", "red")));
    assert.equal(responses.filter(({ status }) => status === 200).length, 4, kind);
    assert.deepEqual([await users.get("ann"), await teams.get("red")], [4, 4]);
    // A key may be a number.
    const numbered = [{ key: () => 7, limiter: users }];
    const other = await served(t, frameworks.express, {
      "/": { guards: [{ limits: numbered, timeout: 60_000 }] },
    });
    assert.equal((await ask(other)).status, 200);
  }
});

test("a route's own limits replace a policy of all routes, and the other way round", async () => {
  const app = Fastify();
  await app.register(rateLimit, { policy: policyOf(5), key: () => "all", headers: "legacy" });
  const hello = () => "Hello";
  app.get("/limits", { config: { rateLimit: { limits: [{ policy: policyOf(1, "own") }] } } }, hello);
  const first = await app.inject("/limits");
  assert.deepEqual([first.statusCode, first.headers["x-ratelimit-limit"]], [200, "1"]);
  assert.equal((await app.inject("/limits")).statusCode, 429);
  const other = Fastify();
  await other.register(rateLimit, { limits: [{ policy: policyOf(1, "own") }] });
  other.get("/policy", { config: { rateLimit: { policy: policyOf(2), key: () => "all" } } }, hello);
  const statuses = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await other.inject("/policy")).statusCode);
  assert.deepEqual(statuses, [200, 200, 429]);
});

test("the decision about each key is published once", async (t) => {
  const seen = [];
  const limits = ["user", "team"].map((name) => ({
    key: () => name,
    limiter: new RateLimiter(policyOf(1, name), { onDecision: (_, message) => seen.push(message) }),
  }));
  const url = await served(t, frameworks.express, { "/": { guards: [{ limits }] } });
  await ask(url);
  assert.deepEqual(
    seen.map(({ operation, key, allowed }) => [operation, key, allowed]),
    [
      ["hitAll", "user", true],
      ["hitAll", "team", true],
    ],
  );
});
