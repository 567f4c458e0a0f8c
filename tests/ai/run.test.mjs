// Reservations are extended as long as work runs, waits end when something is free, and every end is charged once.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { BudgetDenied, budget, budgetFetch, budgetRun } from "tollgate/ai";
import { countsOf, policies, setting, settled } from "./lib/setting.mjs";

const of = { model: "gpt-5", inputTokens: 1_000, outputTokens: 500 };
const usage = { inputTokens: 700, outputTokens: 90 };
const nothing = { requests: 0, tokens: 0, inputTokens: 0, outputTokens: 0, usd: 0, running: 0 };

/** A promise that a test resolves. */
const gate = () => Promise.withResolvers();

describe("work", () => {
  test("is charged what it reports", async () => {
    const { limiter, options } = setting();
    const result = await budgetRun(options)(async ({ report }) => {
      assert.deepEqual([limiter.get("user:42", "tokens"), limiter.get("user:42", "running")], [1_500, 1]);
      report({ inputTokens: 1, outputTokens: 1 });
      report(usage);
      return "done";
    }, of);
    assert.equal(result, "done");
    assert.deepEqual(countsOf(limiter), {
      requests: 1,
      tokens: 790,
      inputTokens: 700,
      outputTokens: 90,
      usd: 1_775,
      running: 0,
    });
  });

  test("that reports nothing is charged as reserved, or nothing if it throws", async () => {
    const { limiter, options } = setting();
    const run = budgetRun(options);
    await assert.rejects(
      run(() => Promise.reject(new Error("no")), of),
      /no/,
    );
    assert.deepEqual(countsOf(limiter), nothing);
    await run(() => "done", of);
    assert.deepEqual(countsOf(limiter).tokens, 1_500);
    await assert.rejects(
      run(({ report }) => {
        report(usage);
        throw new Error("late");
      }, of),
      /late/,
    );
    assert.equal(countsOf(limiter).tokens, 1_500 + 790);
  });

  test("of a day keeps its reservation, and leaves no timer", async () => {
    const { limiter, options, time } = setting();
    const work = gate();
    const running = budgetRun(options)(async ({ report }) => {
      await work.promise;
      report(usage);
    }, of);
    await settled();
    for (let hour = 0; hour < 24; hour += 1) {
      await time.move(3_600_000);
      assert.deepEqual([limiter.get("user:42", "tokens"), limiter.get("user:42", "running")], [1_500, 1]);
    }
    work.resolve();
    await running;
    assert.equal(limiter.get("user:42", "tokens"), 790);
    assert.equal(time.timers, 0);
  });

  test("whose process dies is charged as reserved, when its ttl ends", async () => {
    const { limiter, options, time } = setting();
    // Its timers never ring.
    budgetRun({ ...options, ttl: "5m", timer: () => () => {} })(() => new Promise(() => {}), of);
    await settled();
    await time.move(299_999);
    assert.equal(limiter.get("user:42", "running"), 1);
    await time.move(1);
    assert.deepEqual(countsOf(limiter), {
      ...nothing,
      requests: 1,
      tokens: 1_500,
      inputTokens: 1_000,
      outputTokens: 500,
      usd: 6_250,
    });
  });

  test("whose reservation ended nevertheless is charged what it used beyond", async () => {
    for (const [used, tokens] of [
      [{ inputTokens: 1_000, outputTokens: 900 }, 1_900],
      [{ inputTokens: 10, outputTokens: 10 }, 1_500],
    ]) {
      const { limiter, options, time } = setting();
      const work = gate();
      const running = budgetRun({ ...options, timer: () => () => {} })(async ({ report }) => {
        await work.promise;
        report(used);
      }, of);
      await settled();
      await time.move(60_000);
      work.resolve();
      await running;
      assert.equal(limiter.get("user:42", "tokens"), tokens);
    }
  });
});

describe("a stream", () => {
  const body = JSON.stringify({
    model: "gpt-5",
    messages: [{ content: "hello" }],
    max_tokens: 50,
    stream: true,
  });
  const streaming = (source) => async () =>
    new Response(new ReadableStream(source), { headers: { "Content-Type": "text/event-stream" } });
  const event = Buffer.from(`data: ${JSON.stringify({ choices: [{ delta: { content: "hello" } }] })}\n\n`);

  test("that its reader forgets is charged as reserved some time later", async () => {
    const { limiter, options, time } = setting();
    const fetch = streaming({ pull: (controller) => controller.enqueue(event) });
    const response = await budgetFetch({ ...options, fetch })("https://model/v1/chat/completions", {
      method: "POST",
      body,
    });
    const reader = response.body.getReader();
    await reader.read();
    await time.move(300_000);
    assert.equal(limiter.get("user:42", "running"), 1);
    await time.move(300_000);
    const { running, outputTokens } = countsOf(limiter);
    assert.deepEqual([running, outputTokens, time.timers], [0, 50, 0]);
  });

  test("that its reader waits for is extended as long as it takes", async () => {
    const { limiter, options, time } = setting();
    const fetch = streaming({ pull: () => new Promise(() => {}) });
    const response = await budgetFetch({ ...options, fetch })("https://model/v1/chat/completions", {
      method: "POST",
      body,
    });
    response.text().catch(() => {});
    await time.move(3_600_000);
    assert.equal(limiter.get("user:42", "running"), 1);
  });
});

describe("a limiter that fails", () => {
  test("fails the call before it begins, and charges nothing", async () => {
    const { options } = setting();
    const limiter = {
      policies: policies(),
      reserve: () => Promise.reject(new Error("away")),
      inc: () => assert.fail(),
    };
    let count = 0;
    await assert.rejects(
      budgetRun({ ...options, limiter })(() => count++, of),
      /away/,
    );
    assert.equal(count, 0);
  });

  test("does not fail a call that has ended; its charge is stored later", async () => {
    const { options, time } = setting();
    const inner = new RateLimiter(policies(), { clock: time.clock });
    let failures = 2;
    const limiter = {
      policies: inner.policies,
      async reserve(...args) {
        const reservation = inner.reserve(...args);
        return {
          decision: reservation.decision,
          id: reservation.id,
          extend: () => Promise.reject(new Error("away")),
          async settle(used) {
            if (failures-- > 0) throw new Error("away");
            return reservation.settle(used);
          },
        };
      },
      inc: (...args) => inner.inc(...args),
    };
    const promises = [];
    let isStored = false;
    const waitUntil = (promise) =>
      promises.push(
        promise.then(() => {
          isStored = true;
        }),
      );
    await budgetRun({ ...options, limiter, waitUntil })(({ report }) => report(usage), of);
    assert.equal(inner.get("user:42", "tokens"), 1_500);
    await settled();
    await time.move(1_000);
    assert.equal(inner.get("user:42", "tokens"), 1_500);
    assert.deepEqual([promises.length, isStored], [1, false]);
    await time.move(2_000);
    assert.equal(inner.get("user:42", "tokens"), 790);
    await Promise.all(promises);
    assert.equal(isStored, true);
  });
});

describe("a wait", () => {
  const tight = [{ name: "tokens", algorithm: "token_bucket", capacity: 1_500, refillRate: 100 }];
  function tightSetting(more = {}) {
    const { options, ...rest } = setting({ policies: tight });
    const { prices: _, ...others } = options;
    return { ...rest, run: budgetRun({ ...others, wait: "30s", ...more }) };
  }

  test("ends when the call is allowed", async () => {
    const { run, time } = tightSetting();
    await run(({ report }) => report({ inputTokens: 500, outputTokens: 500 }), of);
    let begun = 0;
    const waiting = run(() => {
      begun = time.now;
    }, of);
    const start = time.now;
    await settled();
    await time.move(9_999);
    assert.equal(begun, 0);
    await time.move(1);
    await waiting;
    assert.equal(begun - start, 10_000);
    assert.equal(time.timers, 0);
  });

  test("ends at once when another call settles", async () => {
    const { run, time } = tightSetting();
    const first = gate();
    const running = run(
      async ({ report }) => {
        await first.promise;
        report({ inputTokens: 900, outputTokens: 50 });
      },
      { inputTokens: 1_500 },
    );
    const order = [];
    const waiting = run(() => order.push("second"), { inputTokens: 500 });
    await settled();
    assert.deepEqual(order, []);
    const now = time.now;
    first.resolve();
    await running;
    await waiting;
    assert.deepEqual(order, ["second"]);
    assert.equal(time.now, now);
  });

  test("is in order for each key, and only the first call tries", async () => {
    const { limiter, options, time } = setting({ policies: tight });
    const { prices: _, ...others } = options;
    let tries = 0;
    const counting = {
      policies: limiter.policies,
      reserve: async (...args) => {
        tries += 1;
        return limiter.reserve(...args);
      },
      inc: () => assert.fail(),
    };
    const run = budgetRun({ ...others, limiter: counting, wait: "5m", key: ({ params }) => params.model });
    const order = [];
    const asked = (model, inputTokens) =>
      run(() => order.push(`${model} ${inputTokens}`), { model, inputTokens });
    await asked("a", 1_500);
    const waiting = [asked("a", 1_000)];
    await settled();
    tries = 0;
    waiting.push(
      asked("a", 100),
      asked("a", 200),
      ...Array.from({ length: 50 }, () => asked("a", 1)),
      asked("b", 7),
    );
    await settled();
    // The other key's, which does not wait.
    assert.deepEqual([tries, order], [1, ["a 1500", "b 7"]]);
    await time.move(9_999);
    assert.equal(order.length, 2);
    assert.equal(tries, 10);
    await time.move(5_000);
    await Promise.all(waiting);
    assert.deepEqual(order.slice(2, 6), ["a 1000", "a 100", "a 200", "a 1"]);
    assert.equal(time.timers, 0);
  });

  test("that is over before its turn tries once more, and leaves the line", async () => {
    const { run, time } = tightSetting({ wait: "29s" });
    await run(() => {}, of);
    const all = [1_500, 1_500, 7].map((inputTokens) => run(() => "done", { inputTokens, outputTokens: 0 }));
    const outcomes = Promise.allSettled(all);
    await settled();
    await time.move(29_000);
    const [first, second, third] = await outcomes;
    assert.equal(first.value, "done");
    // 1,400 tokens are back: not enough for the second, which the third does not overtake before the end.
    assert.ok(second.reason instanceof BudgetDenied);
    assert.equal(third.value, "done");
    assert.equal(time.timers, 0);
  });

  test("that is too long ends with the denial, and one that is in vain does not begin", async () => {
    const { run, time, limiter } = tightSetting();
    await run(() => {}, of);
    const waiting = run(() => assert.fail(), { inputTokens: 1_500, outputTokens: 0 });
    const rejected = assert.rejects(waiting, BudgetDenied);
    await settled();
    await time.move(10_000);
    limiter.inc("user:42", 1_500, "tokens");
    await time.move(10_000);
    limiter.inc("user:42", 1_500, "tokens");
    await time.move(10_000);
    await rejected;
    await assert.rejects(
      run(() => {}, { inputTokens: 1_501, outputTokens: 0 }),
      (error) => error instanceof BudgetDenied && error.retryAfter === Number.POSITIVE_INFINITY,
    );
  });

  test("ends with the signal's reason", async () => {
    const { run, time, limiter } = tightSetting();
    await run(() => {}, of);
    const controller = new AbortController();
    const waiting = run(() => assert.fail(), { ...of, signal: controller.signal });
    await settled();
    controller.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/);
    await assert.rejects(
      run(() => assert.fail(), { ...of, signal: AbortSignal.abort(new Error("before")) }),
      /before/,
    );
    assert.equal(time.timers, 0);
    assert.equal(limiter.get("user:42"), 0);
  });

  test("goes on with the next call at once if the first one gives up", async () => {
    const { run, time } = tightSetting();
    await run(() => {}, { inputTokens: 1_000, outputTokens: 0 });
    const controller = new AbortController();
    const first = run(() => assert.fail(), {
      inputTokens: 1_500,
      outputTokens: 0,
      signal: controller.signal,
    });
    await settled();
    const second = run(() => time.now, { inputTokens: 500, outputTokens: 0 });
    await settled();
    controller.abort(new Error("enough"));
    await assert.rejects(first, /enough/);
    await settled();
    const { now } = time;
    time.now += 1;
    assert.equal(await second, now);
  });

  test("that is aborted while its limiter decides gives the amount back", async () => {
    const { options, limiter } = setting();
    const controller = new AbortController();
    const slow = {
      policies: limiter.policies,
      async reserve(...args) {
        const reservation = limiter.reserve(...args);
        controller.abort(new Error("enough"));
        return reservation;
      },
      inc: () => assert.fail(),
    };
    const run = budgetRun({ ...options, limiter: slow });
    await assert.rejects(
      run(() => assert.fail(), { ...of, signal: controller.signal }),
      /enough/,
    );
    assert.deepEqual(countsOf(limiter), nothing);
  });

  test("by slots that are free elsewhere ends within a second of that", async () => {
    const { options, time, limiter } = setting({
      policies: [{ name: "running", algorithm: "concurrency", limit: 1, ttl: "1h" }],
    });
    const { prices: _, ...rest } = options;
    const elsewhere = limiter.reserve("user:42", 1, { ttl: "1h" });
    let hasBegun = false;
    const waiting = budgetRun({ ...rest, wait: "1m" })(() => {
      hasBegun = true;
    });
    await settled();
    await time.move(10_500);
    assert.equal(hasBegun, false);
    elsewhere.settle();
    await time.move(1_000);
    await waiting;
    assert.equal(hasBegun, true);
  });
});

describe("keys and estimates", () => {
  test("may depend on the call", async () => {
    const { limiter, options } = setting();
    const seen = [];
    const middleware = budget({
      ...options,
      key: async (call) => {
        seen.push(call);
        return 42n;
      },
      estimate: ({ inputTokens }) => ({ inputTokens: inputTokens + 1, outputTokens: 20 }),
      countTokens: (text, model) => text.length + model.length,
    });
    const params = {
      prompt: [{ role: "user", content: [{ type: "text", text: "hello" }] }],
      maxOutputTokens: 99,
    };
    let reserved;
    await middleware.wrapGenerate({
      model: { modelId: "gpt-5" },
      params,
      doGenerate: async () => {
        reserved = [limiter.get(42n, "inputTokens"), limiter.get(42n, "outputTokens")];
        return { content: [{ type: "text", text: "four" }] };
      },
    });
    assert.deepEqual(seen, [{ model: "gpt-5", params, inputTokens: 10, outputTokens: 99 }]);
    assert.deepEqual(reserved, [11, 20]);
    assert.deepEqual([limiter.get(42n, "inputTokens"), limiter.get(42n, "outputTokens")], [11, 9]);
  });

  test("a price may be estimated for a model that has none", async () => {
    const { limiter, options } = setting();
    const run = budgetRun(options);
    await run(({ report }) => report(usage), {
      model: "odd",
      inputTokens: 1_000,
      outputTokens: 9,
      usd: "0.0025",
    });
    assert.equal(limiter.get("user:42", "usd"), 2_500);
    assert.equal(limiter.get("user:42", "tokens"), 790);
  });

  test("a file in a prompt counts as a picture, not as its characters", async () => {
    const { options } = setting();
    const inputs = [];
    const fetch = async () => Response.json({ usage: {} });
    const counting = budgetFetch({
      ...options,
      fetch,
      key: ({ inputTokens }) => String(inputs.push(inputTokens)),
    });
    const file = "A".repeat(1_000_000);
    for (const part of [
      { type: "image_url", image_url: { url: `data:image/png;base64,${file}` } },
      { type: "image", source: { type: "base64", media_type: "image/png", data: file } },
      { type: "text", text: file },
    ]) {
      const body = JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: [part] }] });
      await (await counting("https://model/v1/chat/completions", { method: "POST", body })).text();
    }
    assert.deepEqual([inputs[0], inputs[1], inputs[2] > 300_000], [1_000, 1_000, true]);
  });
});
