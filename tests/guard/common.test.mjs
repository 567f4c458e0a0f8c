// Every adapter limits, denies and writes headers in the same way.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { ask, limitFields } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf } from "./lib/limits.mjs";

for (const [name, framework] of Object.entries(frameworks)) {
  const byUser = (request) => framework.header(request, "X-User") ?? "nobody";
  const as = (user) => ({ headers: { "X-User": user } });

  describe(name, () => {
    test("exactly the limit passes of a load at once, and every response says where it stands", async (t) => {
      const limiter = limiterOf(policyOf(10));
      const url = await served(t, framework, { "/": { guards: [{ limiter }] } });
      const responses = await Promise.all(Array.from({ length: 50 }, () => ask(url)));
      const left = responses
        .filter(({ status }) => status === 200)
        .map(({ headers }) => headers.ratelimit.match(/^"api";r=(\d+);t=60$/)[1])
        .sort((one, other) => one - other);
      assert.deepEqual(left, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
      const denied = responses.filter(({ status }) => status === 429);
      assert.equal(denied.length, 40);
      for (const response of denied) {
        assert.deepEqual(limitFields(response), {
          "ratelimit-policy": '"api";q=10;w=60',
          ratelimit: '"api";r=0;t=60',
          "retry-after": "60",
        });
        assert.match(response.headers["content-type"], /^application\/problem\+json\b/);
        assert.equal(response.headers["cache-control"], "no-store");
        assert.deepEqual(JSON.parse(response.body)["violated-policies"], ["api"]);
      }
    });

    test("by default a client is its address, and the policy is all that is needed", async (t) => {
      const url = await served(t, framework, { "/": { guards: [{ policy: policyOf(1) }] } });
      assert.equal((await ask(url)).status, 200);
      assert.equal((await ask(url)).status, 429);
      assert.equal((await ask(url, { headers: { "X-User": "other" } })).status, 429);
    });

    test("key, cost and skip, now or later", async (t) => {
      for (const make of [(value) => value, async (value) => value]) {
        const limiter = limiterOf(policyOf(5));
        const cost = (request) => make(Number(framework.header(request, "X-Cost") ?? 1));
        const skip = (request) => make(framework.header(request, "X-Skip") !== undefined);
        const guard = { limiter, key: (request) => make(byUser(request)), cost, skip };
        const url = await served(t, framework, { "/": { guards: [guard] } });
        assert.equal((await ask(url, { headers: { "X-User": "ann", "X-Cost": "3" } })).status, 200);
        const skipped = await ask(url, { headers: { "X-User": "ann", "X-Cost": "3", "X-Skip": "1" } });
        assert.deepEqual([skipped.status, limitFields(skipped)], [200, {}]);
        assert.equal((await ask(url, { headers: { "X-User": "ann", "X-Cost": "2" } })).status, 200);
        assert.equal((await ask(url, as("ann"))).status, 429);
        assert.equal((await ask(url, as("bob"))).status, 200);
        assert.equal(limiter.get("ann"), 5);
      }
    });

    test("a cost for each policy, in one decision", async (t) => {
      const limiter = limiterOf([policyOf(10, "requests"), policyOf(100, "tokens")]);
      const cost = (request) => ({ tokens: Number(framework.header(request, "X-Tokens")) });
      const url = await served(t, framework, { "/": { guards: [{ limiter, key: byUser, cost }] } });
      assert.equal((await ask(url, { headers: { "X-Tokens": "60" } })).status, 200);
      const denied = await ask(url, { headers: { "X-Tokens": "60" } });
      assert.deepEqual([denied.status, JSON.parse(denied.body)["violated-policies"]], [429, ["tokens"]]);
      assert.deepEqual([limiter.get("nobody", "requests"), limiter.get("nobody", "tokens")], [1, 60]);
    });

    test("plans that differ in anything have a limiter each, also when they are written out anew", async (t) => {
      const plans = {
        free: () => ({ name: "free", algorithm: "fix_window_per_key", limit: 1, scale: "1h" }),
        paid: () => ({ name: "paid", algorithm: "token_bucket", capacity: 3, refillRate: 1, per: "1d" }),
      };
      for (const make of [(value) => value, async (value) => value]) {
        const policyFor = (request) => make(plans[framework.header(request, "X-Plan")]?.());
        const guard = { policy: policyOf(2), policyFor, key: byUser };
        const url = await served(t, framework, { "/": { guards: [guard] } });
        const count = async (headers) => {
          let passed = 0;
          for (let tries = 0; tries < 5; tries += 1)
            passed += (await ask(url, { headers })).status === 200 ? 1 : 0;
          return passed;
        };
        assert.equal(await count({ "X-User": "ann", "X-Plan": "free" }), 1);
        assert.equal(await count({ "X-User": "ann", "X-Plan": "paid" }), 3);
        assert.equal(await count({ "X-User": "ann" }), 2);
        assert.equal(await count({ "X-User": "bob", "X-Plan": "paid" }), 3);
      }
    });

    test("a plan like the limiter's own is the limiter", async (t) => {
      const limiter = limiterOf(policyOf(2));
      const guard = { limiter, policyFor: () => policyOf(2), key: byUser };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      await ask(url, as("ann"));
      assert.equal(limiter.get("ann"), 1);
    });

    test("several guards list all policies, and the one that denies says when to come back", async (t) => {
      const guards = [
        { limiter: limiterOf(policyOf(9, "burst")) },
        { limiter: limiterOf({ name: "daily", algorithm: "fix_window_per_key", limit: 1, scale: "1d" }) },
      ];
      const url = await served(t, framework, { "/": { guards } });
      const first = await ask(url);
      const members = (list) => list.split(", ").sort();
      const policies = ['"burst";q=9;w=60', '"daily";q=1;w=86400'];
      assert.deepEqual(members(first.headers["ratelimit-policy"]), policies);
      assert.deepEqual(members(first.headers.ratelimit), ['"burst";r=8;t=60', '"daily";r=0;t=86400']);
      assert.equal(first.headers["retry-after"], undefined);
      const second = await ask(url);
      assert.equal(second.status, 429);
      assert.deepEqual(members(second.headers["ratelimit-policy"]), policies);
      assert.equal(second.headers["retry-after"], "86400");
    });

    test("of several guards that let a denied request pass, the longest wait is in the headers", async (t) => {
      const denied = (name, scale) => {
        const limiter = limiterOf({ name, algorithm: "fix_window_per_key", limit: 1, scale });
        return { limiter, cost: 2, onDenied: "allow", headers: "legacy" };
      };
      const guards = [denied("a", "1m"), denied("b", "1h"), denied("c", "1s")];
      const url = await served(t, framework, { "/": { guards } });
      const { status, headers } = await ask(url);
      assert.equal(status, 200);
      // A cost that never fits has no time to come back; the next request of cost 2 is the same.
      assert.equal(headers["retry-after"], undefined);
      const waiting = ["1m", "1h", "1s"].map((scale) => {
        const limiter = limiterOf({ name: scale, algorithm: "fix_window_per_key", limit: 1, scale });
        limiter.set("all", 1);
        return { limiter, key: () => "all", onDenied: "allow", headers: "legacy" };
      });
      const other = await served(t, framework, { "/": { guards: waiting } });
      const response = await ask(other);
      assert.equal(response.status, 200);
      assert.equal(response.headers["retry-after"], "3600");
    });

    test("the older headers are those of the guard with the fewest hits left", async (t) => {
      for (const limits of [
        [9, 4, 6],
        [4, 9, 6],
        [9, 6, 4],
      ]) {
        const guards = limits.map((limit) => ({
          limiter: limiterOf(policyOf(limit, `of-${limit}`)),
          headers: "legacy",
        }));
        const url = await served(t, framework, { "/": { guards } });
        const { headers } = await ask(url);
        assert.equal(headers["x-ratelimit-limit"], "4");
        assert.equal(headers["x-ratelimit-remaining"], "3");
      }
    });

    test("headers: none", async (t) => {
      const guard = { limiter: limiterOf(policyOf(1)), headers: "none" };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      assert.deepEqual(limitFields(await ask(url)), {});
      const denied = await ask(url);
      assert.deepEqual([denied.status, limitFields(denied)], [429, {}]);
    });

    test("onDecision has every decision and its request", async (t) => {
      const seen = [];
      const onDecision = ({ allowed, remaining }, request) =>
        seen.push([allowed, remaining, byUser(request)]);
      const guard = { limiter: limiterOf(policyOf(1)), key: byUser, onDecision };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      await ask(url, as("ann"));
      await ask(url, as("ann"));
      assert.deepEqual(seen, [
        [true, 0, "ann"],
        [false, 0, "ann"],
      ]);
    });

    test("a limiter may be chosen by the request", async (t) => {
      const limiters = { ann: limiterOf(policyOf(1, "one")), bob: limiterOf(policyOf(2, "two")) };
      const guard = { limiter: (request) => limiters[byUser(request)], key: () => "all" };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      assert.equal((await ask(url, as("ann"))).headers["ratelimit-policy"], '"one";q=1;w=60');
      assert.equal((await ask(url, as("bob"))).headers["ratelimit-policy"], '"two";q=2;w=60');
      assert.equal((await ask(url, as("ann"))).status, 429);
      assert.equal((await ask(url, as("bob"))).status, 200);
      // Neither a limiter nor a word about it: the request fails, and does not pass.
      assert.equal((await ask(url, as("eve"))).status, 500);
    });

    test("guards with the same policy have budgets of their own", async (t) => {
      const policy = policyOf(1);
      const routes = { "/a": { guards: [{ policy }] }, "/b": { guards: [{ policy }] } };
      const url = await served(t, framework, routes);
      assert.equal((await ask(`${url}/a`)).status, 200);
      assert.equal((await ask(`${url}/b`)).status, 200);
      assert.equal((await ask(`${url}/a`)).status, 429);
    });
  });
}
