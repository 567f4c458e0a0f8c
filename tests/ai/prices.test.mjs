// Prices say all that providers bill; charges and soft limits are told; errors have words and units.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { BudgetDenied, budgetRun, dollars, usd } from "tollgate/ai";
import { of } from "./lib/asked.mjs";
import { countsOf, prices, setting } from "./lib/setting.mjs";

describe("prices", () => {
  /** The price of a usage in millionths. */
  async function priceOf(price, said) {
    const { limiter, options } = setting();
    const run = budgetRun({ ...options, prices: typeof price === "function" ? price : { m: price } });
    await run(({ report }) => report(said), { model: "m", inputTokens: 1, outputTokens: 1 });
    return limiter.get("user:42", "usd");
  }
  const base = { input: "2", output: "10" };

  test("say cache writes of an hour, which cost twice the input by default", async () => {
    const said = {
      input_tokens: 10,
      output_tokens: 1,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 1_000,
      cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 },
    };
    assert.equal(
      await priceOf({ ...base, cachedInput: "0.2", cacheWrite: "2.5" }, said),
      20 + 10 + 20 + 1_000 + 2_400,
    );
    assert.equal(await priceOf({ ...base, longCacheWrite: "3" }, said), 20 + 10 + 200 + 800 + 1_800);
    const { cache_creation_input_tokens: _, ...parts } = said;
    assert.equal(await priceOf(base, parts), 20 + 10 + 200 + 800 + 2_400);
    const ai = {
      inputTokens: { total: 1_110, cacheRead: 100, cacheWrite: 1_000 },
      outputTokens: { total: 1 },
      raw: said,
    };
    assert.equal(await priceOf(base, ai), 20 + 10 + 200 + 800 + 2_400);
  });

  test("say tiers by context: the largest that fits is that of the whole call", async () => {
    const above = [
      { inputTokens: 1_000, input: "4", output: "20" },
      { inputTokens: 100, input: "3", output: "15", cachedInput: "1" },
    ];
    const said = (input) => ({
      prompt_tokens: input,
      completion_tokens: 10,
      prompt_tokens_details: { cached_tokens: 50 },
    });
    assert.equal(await priceOf({ ...base, above }, said(100)), 200 + 100);
    assert.equal(await priceOf({ ...base, above }, said(101)), 51 * 3 + 50 + 150);
    assert.equal(await priceOf({ ...base, above }, said(1_001)), 1_001 * 4 + 200);
  });

  test("say sound, images, tools, tiers of service, calls and seconds", async () => {
    const price = {
      ...base,
      audioInput: "32",
      audioOutput: "64",
      imageInput: "5",
      imageOutput: "40",
      tiers: { flex: "0.5", priority: "2.000000000001" },
      uses: { web_search_requests: "0.01", calls: "0.000001", seconds: "0.0001" },
    };
    const said = {
      prompt_tokens: 100,
      completion_tokens: 50,
      prompt_tokens_details: { audio_tokens: 40, image_tokens: 10 },
      completion_tokens_details: { audio_tokens: 20, image_tokens: 5 },
    };
    const tokens = 50 * 2 + 40 * 32 + 10 * 5 + 25 * 10 + 20 * 64 + 5 * 40;
    assert.equal(await priceOf(price, said), tokens + 1);
    assert.equal(await priceOf(price, { ...said, service_tier: "flex" }), tokens / 2 + 1);
    assert.equal(await priceOf(price, { ...said, service_tier: "priority" }), 2 * tokens + 1 + 1);
    assert.equal(
      await priceOf(price, { ...said, server_tool_use: { web_search_requests: 3 } }),
      tokens + 1 + 30_000,
    );
    assert.equal(await priceOf(price, { type: "duration", seconds: 2.1 }), 12 + 1 + 300);
    const gemini = {
      promptTokenCount: 100,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: 50 },
        { modality: "AUDIO", tokenCount: 40 },
        { modality: "IMAGE", tokenCount: 10 },
      ],
      candidatesTokenCount: 50,
      candidatesTokensDetails: [
        { modality: "AUDIO", tokenCount: 20 },
        { modality: "IMAGE", tokenCount: 5 },
      ],
      totalTokenCount: 150,
    };
    assert.equal(await priceOf(price, gemini), tokens + 1);
  });

  test("may be a function of the use: prices, or a price", async () => {
    const uses = [];
    const of = (use) => {
      uses.push(use);
      return use.usage.outputTokens > 5 ? "0.5" : base;
    };
    const said = (output) => ({ inputTokens: 10, outputTokens: output });
    assert.equal(await priceOf(of, said(5)), 20 + 50);
    assert.equal(await priceOf(of, said(6)), 500_000);
    assert.deepEqual(uses.at(-1), {
      model: "m",
      usage: {
        inputTokens: 10,
        cachedInputTokens: 0,
        cacheWriteTokens: 0,
        longCacheWriteTokens: 0,
        audioInputTokens: 0,
        imageInputTokens: 0,
        outputTokens: 6,
        audioOutputTokens: 0,
        imageOutputTokens: 0,
        uses: { calls: 1 },
        tier: undefined,
      },
    });
    await assert.rejects(
      priceOf(() => undefined, said(5)),
      /prices: "m" has no price/,
    );
    await assert.rejects(
      priceOf(() => ({ input: 2 }), said(5)),
      /^TollgateError: prices\["m"\]\.input: 2 is not/,
    );
  });

  test("of a function that fails in the end are those of the reservation", async (t) => {
    const warn = t.mock.method(console, "warn", () => {});
    let calls = 0;
    const failing = () => {
      calls += 1;
      if (calls > 1) throw new Error("no");
      return "0.7";
    };
    assert.equal(await priceOf(failing, { inputTokens: 10, outputTokens: 900 }), 700_000);
    assert.match(
      String(warn.mock.calls[0]?.arguments),
      /a call has no price, so it is charged as reserved: Error: no/,
    );
  });

  test("that are invalid are errors that name the field", () => {
    const { options } = setting();
    const invalid = (price, message) =>
      assert.throws(() => budgetRun({ ...options, prices: { m: { ...base, ...price } } }), {
        code: "invalid_option",
        message,
      });
    invalid({ longCacheWrite: 4 }, /^prices\["m"\]\.longCacheWrite: 4 is not a decimal string/);
    invalid({ above: {} }, /^prices\["m"\]\.above: an object is not/);
    invalid({ above: [{ inputTokens: -1, ...base }] }, /^prices\["m"\]\.above\[0\]\.inputTokens: /);
    invalid({ above: [{ inputTokens: 5 }] }, /^prices\["m"\]\.above\[0\]\.input is required/);
    invalid({ tiers: { batch: 0.5 } }, /^prices\["m"\]\.tiers\["batch"\]: 0\.5 is not a decimal string/);
    invalid({ uses: [] }, /^prices\["m"\]\.uses: an array is not/);
  });
});

describe("onCharge", () => {
  test("is told of every charge: its key, model, usage, price and reservation", async () => {
    const { limiter, options } = setting();
    const charges = [];
    const onCharge = (charge) => charges.push(charge);
    const run = budgetRun({ ...options, onCharge });
    await run(({ report }) => report({ inputTokens: 700, outputTokens: 90 }), of);
    await run(() => "unknown", of);
    await assert.rejects(run(() => Promise.reject(new Error("no")), of));
    const [said, reserved] = charges;
    assert.equal(charges.length, 2);
    const { key, model, usd, reservation } = said;
    assert.deepEqual(
      [key, model, usd, typeof reservation],
      ["user:42", "gpt-5", 1_775, "number" === typeof reservation ? "number" : "string"],
    );
    assert.deepEqual([said.usage.inputTokens, said.usage.outputTokens], [700, 90]);
    assert.deepEqual([reserved.usage, reserved.usd], [undefined, 6_250]);
    assert.equal(countsOf(limiter).usd, 1_775 + 6_250);
  });

  test("gets prices where no policy limits them", async () => {
    const limiter = new RateLimiter({ name: "requests", algorithm: "fix_window", limit: 5, scale: "1d" });
    let spent;
    const onCharge = ({ usd }) => {
      spent = usd;
    };
    await budgetRun({ limiter, key: "a", prices, onCharge })(
      ({ report }) => report({ inputTokens: 4, outputTokens: 1 }),
      of,
    );
    assert.equal(spent, 15);
  });

  test("that fails does not fail the call", async (t) => {
    const warn = t.mock.method(console, "warn", () => {});
    const { options } = setting();
    const run = budgetRun({ ...options, onCharge: () => Promise.reject(new Error("no")) });
    assert.equal(await run(() => "done", of), "done");
    assert.match(String(warn.mock.calls[0].arguments), /onCharge failed: Error: no/);
  });
});

describe("a soft limit", () => {
  const usdOf = (limit) => [{ name: "usd", algorithm: "fix_window", limit, scale: "1h" }];
  const asked = { model: "gpt-5", inputTokens: 0, outputTokens: 10 };

  test("is told once, until the key is below it again", async () => {
    const { limiter, options, time } = setting({ policies: usdOf(1_000) });
    const reached = [];
    const run = budgetRun({
      ...options,
      softLimits: { usd: 0.8 },
      onSoftLimit: (each) => reached.push(each),
    });
    for (let call = 0; call < 7; call += 1) await run(() => {}, asked);
    assert.deepEqual(reached, []);
    for (let call = 0; call < 2; call += 1) await run(() => {}, asked);
    assert.deepEqual(reached, [{ key: "user:42", policy: "usd", used: 800, limit: 1_000 }]);
    await time.move(3_600_000);
    for (let call = 0; call < 8; call += 1) await run(() => {}, asked);
    assert.equal(reached.length, 2);
    assert.equal(limiter.get("user:42"), 800);
  });

  test("of a bucket is what is gone", async () => {
    const bucket = [
      { name: "outputTokens", algorithm: "token_bucket", capacity: 100, refillRate: 1, per: "1h" },
    ];
    const { options } = setting({ policies: bucket });
    const { prices: _, ...rest } = options;
    const reached = [];
    const onSoftLimit = ({ used }) => reached.push(used);
    const run = budgetRun({ ...rest, softLimits: { outputTokens: 0.5 }, onSoftLimit });
    for (const outputTokens of [49, 1]) await run(() => {}, { outputTokens });
    assert.deepEqual(reached, [50]);
  });

  test("needs both options, a policy whose limit is known, and a part", () => {
    const { options } = setting();
    const onSoftLimit = () => {};
    for (const [more, message] of [
      [{ softLimits: { usd: 0.8 } }, /^onSoftLimit is required/],
      [{ onSoftLimit }, /^softLimits is required/],
      [
        { onSoftLimit, softLimits: { rpm: 0.8 } },
        /^softLimits\.rpm: 0\.8 is not given for a policy whose limit/,
      ],
      [
        { onSoftLimit, softLimits: { usd: 80 } },
        /^softLimits\.usd: 80 is not a part of the limit, such as 0\.8/,
      ],
      [{ onSoftLimit, softLimits: 0.8 }, /^softLimits: 0\.8 is not/],
    ])
      assert.throws(() => budgetRun({ ...options, ...more }), { code: "invalid_option", message });
  });
});

describe("words", () => {
  test("a wait is in its two largest units, rounded up", async () => {
    const requests = { name: "requests", algorithm: "fix_window", limit: 1, scale: "30d" };
    for (const [left, words] of [
      [1, "1 second"],
      [59_001, "1 minute"],
      [60_001, "1 minute 1 second"],
      [3_600_000, "1 hour"],
      [982_241_000, "11 days 9 hours"],
      [86_399_000, "24 hours"],
    ]) {
      let now = 30 * 86_400_000;
      const limiter = new RateLimiter(requests, { clock: () => now });
      const run = budgetRun({ limiter, key: "a", clock: () => now });
      await run(() => {});
      now += 30 * 86_400_000 - left;
      await assert.rejects(
        run(() => {}),
        (error) => {
          assert.equal(error.message, `the budget denies the call by requests: try again in ${words}`);
          return error instanceof BudgetDenied;
        },
      );
    }
  });

  test("an amount that never fits has units", async () => {
    for (const [name, words] of [
      ["tokens", "40,964 of 1,000 tokens"],
      ["inputTokens", "40,959 of 1,000 input tokens"],
      ["outputTokens", "5 of 1 output tokens"],
      ["usd", "$0.051249 of $0.001"],
    ]) {
      const limit = name === "outputTokens" ? 1 : 1_000;
      const limiter = new RateLimiter({ name, algorithm: "fix_window", limit, scale: "1d" });
      const run = budgetRun({ limiter, key: "a", ...(name === "usd" && { prices }) });
      await assert.rejects(
        run(() => {}, { model: "gpt-5", inputTokens: 40_959, outputTokens: 5 }),
        {
          message: `the budget never allows the call by ${name}: it may use ${words}; set its most output tokens, or the option estimate`,
        },
      );
    }
  });

  test("dollars are the inverse of usd", () => {
    for (const [millionths, text] of [
      [0, "0.00"],
      [1, "0.000001"],
      [2_500, "0.0025"],
      [100_000, "0.10"],
      [19_860_000, "19.86"],
      [20_000_000, "20.00"],
      [9_007_199_254_740_990, "9007199254.74099"],
    ]) {
      assert.equal(dollars(millionths), text);
      assert.equal(usd(dollars(millionths)), millionths);
    }
    for (const wrong of [-1, 0.5, Number.NaN, "5", 5n, undefined])
      assert.throws(() => dollars(wrong), { code: "invalid_option", message: /^millionths/ });
  });
});
