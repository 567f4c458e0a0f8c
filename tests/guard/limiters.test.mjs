// The limiters that are not in memory: Durable Objects, one that the Worker's HTTP API answers, and one over a store.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { RateLimiter } from "tollgate";
import { RemoteLimiter } from "tollgate/client";
import { StoreLimiter } from "tollgate/store";
import { memoryStore } from "../store/lib/stores.mjs";
import { ask, limitFields } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf, start } from "./lib/limits.mjs";

/** A namespace of Durable Objects: each has a name, and is asked with policies. */
function namespace() {
  const asked = [];
  const limiters = new Map();
  const limiterFor = (policies) => {
    const text = JSON.stringify(policies);
    if (!limiters.has(text)) limiters.set(text, new RateLimiter(policies, { clock: () => start }));
    return limiters.get(text);
  };
  return {
    asked,
    // A namespace has a method of this name, too, which is not the limiter's.
    get: () => assert.fail("a namespace is asked by names"),
    getByName: (name) => ({
      hit: async (policies, cost) => {
        asked.push([name, policies.map(({ name }) => name), cost]);
        return limiterFor(policies).hit(name, cost);
      },
    }),
  };
}

/** What the Worker's HTTP API answers, by a limiter in memory. */
const apiOf = (limiter) => async (request) => {
  const items = await request.json();
  return Response.json(items.map(({ key, cost }) => limiter.hit(key, cost)));
};

for (const [name, framework] of Object.entries(frameworks)) {
  const key = (request) => framework.header(request, "X-User");
  const as = (user, more = {}) => ({ headers: { "X-User": user, ...more } });

  describe(name, () => {
    test("a rate-limit binding of Cloudflare: no more headers than it knows", async (t) => {
      const counts = new Map();
      const binding = {
        limit: async ({ key, ...rest }) => {
          assert.deepEqual(rest, {});
          counts.set(key, (counts.get(key) ?? 0) + 1);
          return { success: counts.get(key) <= 1 };
        },
      };
      const seen = [];
      const guard = {
        limiter: () => binding,
        policy: policyOf(1),
        key,
        onDecision: (each) => seen.push(each),
      };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      const allowed = await ask(url, as("ann"));
      assert.equal(allowed.status, 200);
      assert.deepEqual(limitFields(allowed), { "ratelimit-policy": '"api";q=1;w=60' });
      const denied = await ask(url, as("ann"));
      assert.equal(denied.status, 429);
      assert.deepEqual(limitFields(denied), {
        "ratelimit-policy": '"api";q=1;w=60',
        ratelimit: '"api";r=0;t=60',
        "retry-after": "60",
      });
      assert.equal((await ask(url, as("bob"))).status, 200);
      assert.deepEqual(
        seen.map(({ allowed, remaining, retryAfter }) => [allowed, remaining, retryAfter]),
        [
          [true, 1, 0],
          [false, 0, 60_000],
          [true, 1, 0],
        ],
      );
    });

    test("a rate-limit binding counts one window, one for each request, and takes nothing back", () => {
      const limiter = { limit: async () => ({ success: true }) };
      const { rateLimit } = framework;
      const wrong = (options, message) =>
        assert.throws(() => rateLimit({ limiter, ...options }), { code: "invalid_option", message });
      wrong({}, /^policy is required/);
      wrong({ policy: [policyOf(1), policyOf(2, "b")] }, /use one window, such as/);
      wrong({ policy: { algorithm: "token_bucket", capacity: 1, refillRate: 1 } }, /use one window/);
      wrong({ policy: { algorithm: "concurrency", limit: 1 } }, /use one window/);
      wrong({ policy: policyOf(1), charge: "failures" }, /without reserve, settle and cancel/);
      wrong({ policyFor: () => policyOf(1) }, /^policyFor is not accepted over such a limiter/);
      wrong({ policy: policyOf(1), binding: limiter }, /limiter: \(c\) => c\.env\.RATE_LIMIT/);
    });

    test("a cost, and a binding that fails", async (t) => {
      const down = { limit: () => Promise.reject(new Error("down")) };
      const limiter = { limit: async () => ({ success: true }) };
      const guards = (options) => [{ limiter, policy: policyOf(1), key, ...options }];
      const url = await served(t, framework, {
        "/cost": { guards: guards({ cost: 2 }) },
        "/allow": { guards: guards({ limiter: down }) },
        "/deny": { guards: guards({ limiter: down, onError: "deny" }) },
      });
      const statuses = await Promise.all(
        ["cost", "allow", "deny"].map(async (path) => (await ask(`${url}/${path}`, as("ann"))).status),
      );
      assert.deepEqual(statuses, [500, 200, 503]);
    });

    test("Durable Objects, given at once or by the request", async (t) => {
      const objects = namespace();
      for (const limiter of [objects, () => objects]) {
        objects.asked.length = 0;
        const guard = { limiter, policy: policyOf(1, `${typeof limiter}`), key, cost: 1 };
        const url = await served(t, framework, { "/": { guards: [guard] } });
        const first = await ask(url, as("ann"));
        assert.deepEqual([first.status, first.headers.ratelimit], [200, `"${typeof limiter}";r=0;t=60`]);
        assert.equal((await ask(url, as("ann"))).status, 429);
        assert.equal((await ask(url, as("bob"))).status, 200);
        assert.deepEqual(objects.asked, [
          ["ann", [typeof limiter], 1],
          ["ann", [typeof limiter], 1],
          ["bob", [typeof limiter], 1],
        ]);
      }
    });

    test("Durable Objects are called with the policies of the request's plan", async (t) => {
      const limiter = namespace();
      const plans = {
        free: policyOf(1, "free"),
        paid: { name: "paid", algorithm: "token_bucket", capacity: 2, refillRate: 1, per: "1d" },
      };
      const policyFor = (request) => plans[framework.header(request, "X-Plan")];
      const url = await served(t, framework, { "/": { guards: [{ limiter, key, policyFor }] } });
      assert.equal(
        (await ask(url, as("ann", { "X-Plan": "free" }))).headers["ratelimit-policy"],
        '"free";q=1;w=60',
      );
      assert.equal((await ask(url, as("ann", { "X-Plan": "paid" }))).headers.ratelimit, '"paid";r=1;t=86400');
      assert.equal((await ask(url, as("ann", { "X-Plan": "free" }))).status, 429);
      // No plan and no policy of the guard's own: it does not pass.
      assert.equal((await ask(url, as("ann"))).status, 503);
    });

    test("an invalid key or cost calls no object", async (t) => {
      const limiter = namespace();
      const guard = { limiter, policy: policyOf(1), key };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      assert.equal((await ask(url)).status, 400);
      for (const cost of [-1, 0.5, "1", undefined, null, { api: -1 }, { api: "1" }]) {
        const url = await served(t, framework, { "/": { guards: [{ ...guard, cost: () => cost }] } });
        assert.equal((await ask(url, as("ann"))).status, 503, String(cost));
      }
      assert.deepEqual(limiter.asked, []);
    });

    test("RemoteLimiter: with the Worker's policy, for the headers", async (t) => {
      const remote = new RemoteLimiter({
        url: "https://limits.example.com/_tollgate",
        token: "a-secret",
        policy: "api",
        fetch: apiOf(limiterOf(policyOf(2))),
      });
      const url = await served(t, framework, {
        "/": { guards: [{ limiter: remote, policy: policyOf(2), key }] },
      });
      const responses = await Promise.all(Array.from({ length: 9 }, () => ask(url, as("ann"))));
      assert.equal(responses.filter(({ status }) => status === 200).length, 2);
      assert.deepEqual(
        new Set(responses.map(({ headers }) => headers["ratelimit-policy"])),
        new Set(['"api";q=2;w=60']),
      );
    });

    test("RemoteLimiter: policyFor names the Worker's policy of a plan", async (t) => {
      const plans = { free: policyOf(1, "free"), paid: policyOf(3, "paid"), more: policyOf(4, "paid") };
      const apis = { api: apiOf(limiterOf(policyOf(2))) };
      for (const name of ["free", "paid"]) apis[name] = apiOf(limiterOf(plans[name]));
      const limiter = new RemoteLimiter({
        url: "https://limits.example.com/_tollgate",
        token: "a-secret",
        policy: "api",
        fetch: async (request) => apis[[(await request.clone().json())[0].policy].flat()[0]](request),
      });
      let plan;
      const guard = { limiter, policy: policyOf(2), key, policyFor: () => plans[plan] };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      for (const [name, limit] of Object.entries({ free: 1, paid: 3, none: 2 })) {
        plan = name;
        const responses = [];
        for (let count = 0; count < 5; count += 1) responses.push(await ask(url, as("ann")));
        assert.equal(responses.filter(({ status }) => status === 200).length, limit, name);
        assert.match(responses[0].headers["ratelimit-policy"], new RegExp(`;q=${limit};`));
      }
      // Its numbers would be those of the headers alone.
      plan = "more";
      assert.equal((await ask(url, as("ann"))).status, 503);
    });

    test("RemoteLimiter: a number as the key, such as a user's id", async (t) => {
      const limiter = new RemoteLimiter({
        url: "https://limits.example.com/_tollgate",
        token: "a-secret",
        policy: "api",
        fetch: apiOf(limiterOf(policyOf(1))),
      });
      for (const id of [42, 2n ** 64n]) {
        const guards = [{ limiter, policy: policyOf(1), key: () => id, onError: "throw" }];
        const url = await served(t, framework, { "/": { guards } });
        assert.equal((await ask(url)).status, 200, String(id));
        assert.equal((await ask(url)).status, 429, String(id));
      }
    });

    test("RemoteLimiter: a key that is too long does not pass, whatever onError is", async (t) => {
      const fetch = () => assert.fail("it is not asked");
      const remote = new RemoteLimiter({
        url: "https://limits.example.com/_tollgate",
        token: "a",
        policy: "api",
        fetch,
      });
      const guard = { limiter: remote, policy: policyOf(2), key, onError: "allow", fallback: policyOf(2) };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      assert.equal((await ask(url, as("a".repeat(1_025)))).status, 400);
    });

    test("RemoteLimiter: a limiter of its own for each plan", async (t) => {
      const limiters = Object.fromEntries(
        [1, 2].map((limit) => {
          const fetch = apiOf(limiterOf(policyOf(limit)));
          const options = { url: "https://limits.example.com/_tollgate", token: "a", policy: "api", fetch };
          return [limit, new RemoteLimiter(options)];
        }),
      );
      const limiter = (request) => limiters[framework.header(request, "X-Plan")];
      const serve = (more) => served(t, framework, { "/": { guards: [{ limiter, key, ...more }] } });
      const url = await serve({ policy: policyOf(2), headers: "none" });
      assert.equal((await ask(url, as("ann", { "X-Plan": "1" }))).status, 200);
      assert.equal((await ask(url, as("ann", { "X-Plan": "1" }))).status, 429);
      assert.equal((await ask(url, as("ann", { "X-Plan": "2" }))).status, 200);
    });

    test("StoreLimiter: exactly the limit, plans, and reservations by the response", async (t) => {
      const clock = () => start;
      const store = memoryStore(clock);
      const over = (policy, options) => new StoreLimiter(policy, { store, clock, ...options });
      const policyFor = (request) => (framework.header(request, "X-Plan") ? policyOf(3) : undefined);
      const guard = { limiter: over(policyOf(2)), key, policyFor };
      const url = await served(t, framework, { "/": { guards: [guard] } });
      const responses = await Promise.all(Array.from({ length: 9 }, () => ask(url, as("ann"))));
      assert.equal(responses.filter(({ status }) => status === 200).length, 2);
      assert.equal(responses[0].headers["ratelimit-policy"], '"api";q=2;w=60');
      assert.equal((await ask(url, as("ann", { "X-Plan": "paid" }))).status, 200);
      assert.equal((await ask(url, as("ann", { "X-Plan": "paid" }))).status, 429);

      const failures = {
        limiter: over(policyOf(1), { prefix: "failed:" }),
        key: () => 42,
        charge: "failures",
      };
      const free = await served(t, framework, { "/": { guards: [failures] } });
      for (let request = 0; request < 3; request++) assert.equal((await ask(free)).status, 200);
    });

    test("StoreLimiter: a store that fails is onError's, a value that cannot be read as well, bad input is not", async (t) => {
      const store = memoryStore(() => start);
      const failing = { get: async () => assert.fail("no store"), swap: store.swap };
      const serve = (store, onError) =>
        served(t, framework, {
          "/": { guards: [{ limiter: new StoreLimiter(policyOf(1), { store }), key, onError }] },
        });
      assert.equal((await ask(await serve(failing, "allow"), as("ann"))).status, 200);
      assert.equal((await ask(await serve(failing, "deny"), as("ann"))).status, 503);
      store.put("ann", "not a state");
      assert.equal((await ask(await serve(store, "deny"), as("ann"))).status, 503);
      assert.equal((await ask(await serve(store, "allow"), as("a".repeat(1_025)))).status, 400);
    });

    test("a limiter elsewhere gets a plan as the third argument", async (t) => {
      const limiter = limiterOf(policyOf(9));
      const asked = [];
      const elsewhere = {
        policies: limiter.policies,
        hit: async (...args) => {
          asked.push(args);
          return limiter.hit(...args);
        },
      };
      const policyFor = (request) =>
        framework.header(request, "X-Plan") === undefined ? undefined : policyOf(1);
      const url = await served(t, framework, { "/": { guards: [{ limiter: elsewhere, key, policyFor }] } });
      assert.equal((await ask(url, as("ann"))).headers["ratelimit-policy"], '"api";q=9;w=60');
      assert.equal((await ask(url, as("ann", { "X-Plan": "free" }))).status, 429);
      assert.deepEqual(asked, [
        ["ann", 1],
        ["ann", 1, [policyOf(1)]],
      ]);
    });
  });
}
