// Options are checked when a budget is made, policies are found by their names, and every kind of limiter is charged alike.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { budget, budgetFetch, budgetRun } from "tollgate/ai";
import { RemoteLimiter } from "tollgate/client";
import { StoreLimiter } from "tollgate/store";
import { memoryStore } from "tollgate/testing";
import { countsOf, day, policies, prices, setting } from "./lib/setting.mjs";

const tokens = { name: "tokens", algorithm: "fix_window", limit: 9_000, scale: "30d" };
const limiter = new RateLimiter(tokens);
const all = new RateLimiter(policies());
const of = { model: "gpt-5", inputTokens: 100, outputTokens: 50 };
const usage = { inputTokens: 70, outputTokens: 9 };

describe("an invalid option", () => {
  const invalid = (options, message) => {
    for (const make of [budget, budgetFetch, budgetRun])
      assert.throws(() => make(options), { name: "TollgateError", code: "invalid_option", message });
  };

  test("is an error that names it, and what is accepted", () => {
    invalid(undefined, /^options/);
    invalid([], /^options/);
    invalid({ limiter, key: "a", limit: 5 }, /"limit" is not/);
    invalid({ key: "a" }, /^limiter is required \(a RateLimiter, RedisLimiter/);
    invalid({ limiter: {}, key: "a" }, /^limiter: an object/);
    invalid({ limiter }, /^key is required/);
    invalid({ limiter, key: "a", wait: "soon" }, /^wait: "soon" is not a duration of at most a day/);
    invalid({ limiter, key: "a", wait: "2d" }, /^wait: "2d"/);
    invalid({ limiter, key: "a", wait: 0 }, /^wait: 0/);
    invalid({ limiter, key: "a", ttl: "25h" }, /^ttl: "25h"/);
    for (const name of ["countTokens", "waitUntil", "clock", "timer"])
      invalid({ limiter, key: "a", [name]: 5 }, new RegExp(`^${name}: 5 is not a function`));
    invalid({ limiter, key: "a", estimate: { tokens: 5 } }, /"tokens" is not/);
    invalid({ limiter, key: "a", estimate: { inputTokens: -1 } }, /^estimate.inputTokens: /);
    invalid({ limiter, key: "a", estimate: { outputTokens: 0.5 } }, /^estimate.outputTokens: /);
    invalid({ limiter, key: "a", estimate: 5 }, /^options: 5 is not an object/);
  });

  test("of prices", () => {
    const priced = (given) => ({ limiter: all, key: "a", prices: given });
    invalid({ limiter, key: "a", prices }, /^prices: "given" is not used with a policy named "usd"/);
    invalid(priced([]), /^prices: /);
    invalid(priced(new Map()), /^prices: /);
    invalid(priced({ m: "1" }), /^prices\["m"\]: "1" is not \{ input: "1.25", output: "10" \}/);
    invalid(priced({ m: { input: "1" } }), /^prices\["m"\]\.output is required \(a decimal string/);
    invalid(priced({ m: { output: "1" } }), /^prices\["m"\]\.input is required/);
    invalid(
      priced({ m: { input: 1.25, output: "10" } }),
      /^prices\["m"\]\.input: 1\.25 is not a decimal string/,
    );
    invalid(priced({ m: { input: "1", output: "1", cached: "1" } }), /"cached" is not/);
    invalid(
      priced({ m: { input: "1", output: "1", cachedInput: "1e9" } }),
      /^prices\["m"\]\.cachedInput: "1e9"/,
    );
  });

  test("of a limiter none of whose policies a budget knows", () => {
    const rpm = new RateLimiter([
      { ...tokens, name: "rpm" },
      { ...tokens, name: undefined },
    ]);
    invalid(
      { limiter: rpm, key: "a" },
      'limiter: a limiter with the policies "rpm", one without a name is not one with a policy named requests, running, tokens, inputTokens, outputTokens, usd',
    );
  });

  test("of a namespace without policies", () => {
    invalid({ limiter: { getByName() {} }, key: "a" }, /^policy is required/);
  });

  test("of one kind of budget", () => {
    assert.throws(() => budget({ limiter, key: "a", onDenied: "respond" }), {
      message: /^onDenied: "respond" is not a function/,
    });
    assert.throws(() => budgetFetch({ limiter, key: "a", onDenied: "deny" }), {
      message: /^onDenied: "deny" is not "respond", "throw" or a function/,
    });
    assert.throws(() => budgetFetch({ limiter, key: "a", includeUsage: 1 }), {
      message: /^includeUsage: 1 is not a boolean/,
    });
    assert.throws(() => budgetFetch({ limiter, key: "a", fetch: 1 }), {
      message: /^fetch: 1 is not a function/,
    });
    assert.throws(() => budgetRun({ limiter, key: "a", onDenied() {} }), { message: /"onDenied" is not/ });
  });

  test("of a call fails that call, and changes nothing", async () => {
    const { limiter, options } = setting();
    const run = budgetRun(options);
    const before = countsOf(limiter);
    const rejected = (work, more, message) =>
      assert.rejects(run(work, more), { code: "invalid_option", message });
    await rejected(5, of, /^work: 5 is not a function/);
    await rejected(() => {}, { ...of, most: 1 }, /"most" is not/);
    await rejected(() => {}, { ...of, inputTokens: "1" }, /^estimate.inputTokens/);
    await rejected(() => {}, { ...of, usd: "a lot" }, /^usd: "a lot"/);
    await rejected(
      () => {},
      { ...of, model: "gpt-6" },
      'prices: "gpt-6" has no price, and the limiter has a policy named "usd"; add it, or return usd from estimate',
    );
    const wrong = budgetRun({ ...options, estimate: () => ({ output: 5 }) });
    await assert.rejects(
      wrong(() => {}, of),
      { code: "invalid_option" },
    );
    await assert.rejects(
      budgetRun({ ...options, key: () => ({}) })(() => {}, of),
      { code: "invalid_key" },
    );
    assert.deepEqual(countsOf(limiter), before);
  });
});

describe("policies", () => {
  test("are each optional; one of another name costs 1", async () => {
    for (const name of ["requests", "tokens", "inputTokens", "outputTokens", "usd", "running"]) {
      const [own] = policies().filter((policy) => policy.name === name);
      const limiter = new RateLimiter([
        own,
        { name: "other", algorithm: "fix_window", limit: 5, scale: "30d" },
      ]);
      const run = budgetRun({ limiter, key: "a", ...(name === "usd" && { prices }) });
      await run(({ report }) => report(usage), of);
      const counts = { requests: 1, tokens: 79, inputTokens: 70, outputTokens: 9, usd: 178, running: 0 };
      assert.deepEqual([limiter.get("a", name), limiter.get("a", "other")], [counts[name], 1]);
    }
  });

  test("that deny leave the others uncharged", async () => {
    const tight = policies().map((policy) => (policy.name === "usd" ? { ...policy, limit: 10 } : policy));
    const limiter = new RateLimiter(tight);
    await assert.rejects(
      budgetRun({ limiter, key: "user:42", prices })(() => assert.fail(), of),
      (error) => {
        assert.deepEqual(error.decision.violated, ["usd"]);
        assert.deepEqual(error.reserved, { tokens: 150, inputTokens: 100, outputTokens: 50, usd: 625 });
        return true;
      },
    );
    assert.equal(limiter.get("user:42", "requests"), 0);
  });
});

describe("a budget over", () => {
  const expected = [1, 79, 70, 9, 178, 0];
  const names = policies().map(({ name }) => name);

  test("a StoreLimiter", async () => {
    const limiter = new StoreLimiter(policies(), { store: memoryStore() });
    await budgetRun({ limiter, key: 42, prices })(({ report }) => report(usage), of);
    assert.deepEqual(await Promise.all(names.map((name) => limiter.get("42", name))), expected);
  });

  test("a RemoteLimiter, which knows its policies by their names", async () => {
    const inner = new RateLimiter(policies());
    // A Worker that decides by a limiter in memory.
    const operations = {
      reserve: ({ key, cost, ttl }) => {
        const { decision, id, expiresAt } = inner.reserve(key, cost, { ttl });
        return { decision, id, expiresAt };
      },
      settle: ({ id, used }) => ({ settlement: inner.settle(id, used) }),
    };
    const fetch = async (request) => {
      const operation = new URL(request.url).pathname.split("/").at(-1);
      return Response.json((await request.json()).map(operations[operation]));
    };
    const limiter = new RemoteLimiter({
      url: "https://limits.example/_tollgate",
      token: "t",
      policy: names,
      fetch,
    });
    await budgetRun({ limiter, key: 42n, prices })(({ report }) => report(usage), of);
    assert.deepEqual(
      names.map((name) => inner.get("42", name)),
      expected,
    );
    const unnamed = new RemoteLimiter({
      url: "https://limits.example/_tollgate",
      token: "t",
      policy: "api",
      fetch,
    });
    assert.throws(() => budgetRun({ limiter: unnamed, key: "a" }), { code: "invalid_option" });
  });

  test("a namespace of objects, with the policies of each call", async () => {
    const inner = new RateLimiter(policies());
    const calls = [];
    const object = (key) => ({
      async reserve(given, cost, options) {
        calls.push(["reserve", given, options]);
        const { decision, id } = inner.reserve(key, cost, options);
        return { decision, id };
      },
      async settle(given, id, used) {
        calls.push(["settle", given]);
        return inner.settle(id, used);
      },
      extend: () => assert.fail(),
      inc: () => assert.fail(),
    });
    const own = policies();
    await budgetRun({ limiter: { getByName: object }, policy: own, key: 42, prices, ttl: "5m" })(
      ({ report }) => report(usage),
      of,
    );
    assert.deepEqual(
      names.map((name) => inner.get("42", name)),
      expected,
    );
    assert.deepEqual(calls, [
      ["reserve", own, { ttl: 300_000 }],
      ["settle", own],
    ]);
  });
});

test("a day is the longest ttl and wait", () => {
  assert.doesNotThrow(() => budgetRun({ limiter, key: "a", ttl: day, wait: "24h" }));
});
