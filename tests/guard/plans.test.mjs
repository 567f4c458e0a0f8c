// Plans: any number of policies by request, over memory and a store; an upgrade in the middle of a window keeps what was used.

import assert from "node:assert/strict";
import test, { describe, mock } from "node:test";
import { RateLimiter } from "tollgate";
import { rateLimit } from "tollgate/fetch";
import { StoreLimiter } from "tollgate/store";
import { memoryStore } from "../store/lib/stores.mjs";
import { start } from "./lib/limits.mjs";

mock.method(console, "warn", () => {});

const now = start;
const clock = () => now;
const api = (limit, more = {}) => ({ name: "api", algorithm: "sliding_window", limit, scale: "1m", ...more });

/** The limiters of plans, with the guard's own limit. */
const limiters = {
  none: () => undefined,
  RateLimiter: () => new RateLimiter(api(2), { clock }),
  StoreLimiter: () => new StoreLimiter(api(2), { store: memoryStore(clock), clock }),
};

/** A guard whose requests have their key and their plan. */
function guardOf(limiter, more = {}) {
  let request;
  const handler = () => new Response("", { status: request.status ?? 200 });
  const own = limiter === undefined ? { policy: api(2) } : { limiter };
  const options = { ...own, key: () => request.key, policyFor: () => request.plan, ...more };
  const limited = rateLimit(options, handler);
  return async (key, plan, times = 1, status = 200) => {
    const statuses = [];
    for (let count = 0; count < times; count += 1) {
      request = { key, plan, status };
      const response = await limited(new Request("http://localhost/"));
      statuses.push(response.status);
    }
    return statuses.filter((status) => status !== 429).length;
  };
}

for (const [name, create] of Object.entries(limiters)) {
  describe(name, () => {
    test("an upgrade and a downgrade keep what was used, in every algorithm", async () => {
      for (const plan of [
        (limit) => api(limit),
        (limit) => ({ name: "api", algorithm: "fix_window", limit, scale: "1m" }),
        (limit) => ({ name: "api", algorithm: "fix_window_per_key", limit, scale: "1m" }),
        (limit) => ({ name: "api", algorithm: "sliding_counter", limit, scale: "1m" }),
        (limit) => ({ name: "api", algorithm: "token_bucket", capacity: limit, refillRate: 1, per: "1h" }),
        (limit) => ({ name: "api", algorithm: "leaky_bucket", capacity: limit, leakRate: 1, per: "1h" }),
      ]) {
        const hit = guardOf(create());
        const { algorithm } = plan(1);
        assert.equal(await hit("ann", plan(3), 5), 3, algorithm);
        assert.equal(await hit("ann", plan(30), 40), 27, algorithm);
        assert.equal(await hit("ann", plan(3), 5), 0, algorithm);
        assert.equal(await hit("bob", plan(1), 5), 1, algorithm);
      }
    });

    test("a plan far above the limiter's own numbers", async () => {
      const hit = guardOf(create());
      assert.equal(await hit("ann", api(900), 1_000), 900);
      assert.equal(await hit("bob", undefined, 5), 2);
    });

    test("plans of other shapes: each has its own state, which is there after a change back", async () => {
      const hit = guardOf(create());
      const daily = { name: "api", algorithm: "fix_window", limit: 4, scale: "1d" };
      assert.equal(await hit("ann", api(3), 5), 3);
      assert.equal(await hit("ann", daily, 3), 3);
      assert.equal(await hit("ann", api(3), 1), 0);
      assert.equal(await hit("ann", daily, 3), 1);
    });

    test("a policy that two plans have in common is one budget", async () => {
      const hit = guardOf(create());
      const burst = { name: "burst", algorithm: "fix_window", limit: 4, scale: "1m" };
      assert.equal(await hit("ann", api(9), 5), 5);
      assert.equal(await hit("ann", [api(9), burst], 9), 4);
      assert.equal(await hit("ann", [burst], 1), 0);
      assert.equal(await hit("ann", api(10), 5), 1);
      assert.equal(await hit("ann", [burst, { ...burst, name: "other" }], 1), 0);
      assert.equal(await hit("bob", [api(9), burst], 9), 4);
    });

    test("a reservation is settled although the plan has changed meanwhile", async () => {
      const hit = guardOf(create(), { charge: "failures" });
      const both = [api(3), { name: "burst", algorithm: "fix_window", limit: 9, scale: "1m" }];
      assert.equal(await hit("ann", api(3), 5, 200), 5);
      assert.equal(await hit("ann", both, 5, 401), 3);
      assert.equal(await hit("ann", api(3), 5, 200), 0);
    });

    test("2,500 plans of one shape, and 2,500 of shapes of their own", async () => {
      const hit = guardOf(create());
      for (let limit = 1; limit <= 2_500; limit += 1) {
        assert.equal(await hit(`one:${limit}`, { ...api(limit % 900 || 1), denied: "free" }, 1), 1);
        const own = { name: "own", algorithm: "fix_window", limit: 1, scale: 60_000 + limit };
        assert.equal(await hit(`own:${limit}`, own, 2), 1);
      }
    });
  });
}

test("10,000 customers with limits of their own, in one limiter", async (t) => {
  const limiter = new RateLimiter(api(1), { clock });
  const made = t.mock.method(limiter, "sibling");
  const hit = guardOf(limiter);
  const [cpu, { heapUsed, external, arrayBuffers }] = [process.cpuUsage(), process.memoryUsage()];
  const limitOf = (customer) => 1 + (customer % 3);
  for (let round = 0; round < 2; round += 1)
    for (let customer = 0; customer < 10_000; customer += 1)
      assert.equal(
        await hit(customer, api(limitOf(customer) + round), 9),
        round === 0 ? limitOf(customer) : 1,
      );
  assert.deepEqual([limiter.size, made.mock.callCount()], [10_000, 0]);
  const { user, system } = process.cpuUsage(cpu);
  const after = process.memoryUsage();
  const bytes = after.heapUsed - heapUsed + after.external - external + after.arrayBuffers - arrayBuffers;
  t.diagnostic(
    `${((user + system) / 50_000).toFixed(1)} µs of CPU a request, ${Math.round(bytes / 10_000)} B a customer`,
  );
});

test("a concurrency plan holds its slots for as long as the plan says", async () => {
  const limiter = new RateLimiter({ algorithm: "concurrency", limit: 1, ttl: "1m" }, { clock });
  const reserved = mock.method(limiter, "reserve");
  const hit = guardOf(limiter);
  await hit("ann", { algorithm: "concurrency", limit: 5, ttl: "5s" });
  assert.equal(reserved.mock.calls[0].result.expiresAt, start + 5_000);
});

describe("hostile plans", () => {
  const outcome = async (plan) => {
    const limited = rateLimit(
      { policy: api(2), key: () => "ann", policyFor: () => plan, onError: "throw" },
      () => new Response(),
    );
    const once = async () => {
      try {
        return (await limited(new Request("http://localhost/"))).status;
      } catch (error) {
        return error.code ?? error.message;
      }
    };
    return [await once(), await once(), await once(), await once()].join();
  };

  test("each field is read once: a getter cannot pass one number and use another", async () => {
    let reads = 0;
    const plan = { name: "api", algorithm: "sliding_window", scale: "1m" };
    Object.defineProperty(plan, "limit", { enumerable: true, get: () => (++reads % 2 === 1 ? 1 : 1_000) });
    const limited = rateLimit({ key: () => "ann", policyFor: () => plan }, () => new Response());
    const first = await limited(new Request("http://localhost/"));
    assert.deepEqual([reads, first.headers.get("ratelimit-policy")], [1, '"api";q=1;w=60']);
  });

  test("proxies, thenables and values that are no policy", async () => {
    assert.equal(await outcome(new Proxy(api(1), {})), "200,429,429,429");
    assert.equal(await outcome(new Proxy([api(1)], {})), "200,429,429,429");
    const twice = (resolve) => {
      resolve(api(1));
      resolve(api(1_000));
    };
    // biome-ignore lint/suspicious/noThenProperty: it is what is tested.
    assert.equal(await outcome({ then: twice }), "200,429,429,429");
    const failing = () => {
      throw new Error("broken");
    };
    // biome-ignore lint/suspicious/noThenProperty: it is what is tested.
    assert.match(await outcome({ then: failing }), /^broken/);
    assert.match(await outcome(new Proxy(api(1), { ownKeys: failing })), /^broken/);
    assert.equal(await outcome(null), "200,200,429,429");
    for (const plan of [5, "api", [], {}, [[api(1)]], { ...api(1), limit: { toJSON: () => 1 } }])
      assert.match(await outcome(plan), /^(invalid_policy|unknown_algorithm)/, JSON.stringify(plan));
  });

  test("a plan that is changed later is the new one from then on", async () => {
    const plan = api(1);
    const hit = guardOf(undefined);
    assert.equal(await hit("ann", plan, 3), 1);
    plan.limit = 4;
    assert.equal(await hit("ann", plan, 5), 3);
  });
});
