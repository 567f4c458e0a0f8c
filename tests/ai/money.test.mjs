// Money is exact: decimal strings become millionths of a dollar by integer arithmetic, rounded up.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "tollgate";
import { budgetRun, usd } from "tollgate/ai";
import fc from "../lib/properties.mjs";

test("a decimal string is an amount in millionths", () => {
  for (const [text, millionths] of [
    ["0.0025", 2_500],
    ["20", 20_000_000],
    ["0", 0],
    ["1.1", 1_100_000],
    ["0.000001", 1],
    ["0.0000001", 1],
    ["0.0000010000", 1],
    ["0.000001000001", 2],
    ["9007199254.740990", 9_007_199_254_740_990],
    ["007.50", 7_500_000],
  ])
    assert.equal(usd(text), millionths, text);
});

test("anything else is an error", () => {
  for (const wrong of [
    "",
    ".5",
    "5.",
    "1e3",
    "-1",
    "+1",
    "1,5",
    " 1",
    "1 ",
    "0x1",
    "١",
    "1.0000000000001",
    "NaN",
    20,
    0.0025,
    1n,
    null,
    undefined,
    {},
    ["1"],
  ])
    assert.throws(() => usd(wrong), { name: "TollgateError", code: "invalid_option", message: /^usd/ });
  assert.throws(() => usd("9007199255"), { code: "invalid_option", message: /at most 9007199254 dollars/ });
  assert.throws(() => usd("999999999999999"), { code: "invalid_option" });
});

const price = fc.tuple(fc.integer({ min: 0, max: 999 }), fc.integer({ min: 0, max: 999_999 }));
const textOf = ([whole, fraction]) => `${whole}.${String(fraction).padStart(6, "0")}`;
const tokens = fc.integer({ min: 0, max: 50_000_000 });

test("the price of a call is that of its tokens, in fractions of a millionth, rounded up once", async () => {
  await fc.assert(
    fc.asyncProperty(
      price,
      price,
      price,
      tokens,
      tokens,
      tokens,
      async (input, cachedInput, output, all, cached, out) => {
        fc.pre(cached <= all);
        const limiter = new RateLimiter({
          name: "usd",
          algorithm: "fix_window",
          limit: Number.MAX_SAFE_INTEGER,
          scale: "1d",
        });
        const prices = {
          m: { input: textOf(input), cachedInput: textOf(cachedInput), output: textOf(output) },
        };
        const run = budgetRun({ limiter, key: "a", prices });
        const usage = {
          prompt_tokens: all,
          prompt_tokens_details: { cached_tokens: cached },
          completion_tokens: out,
        };
        await run(({ report }) => report(usage), { model: "m", inputTokens: all, outputTokens: out });
        // In millionths of millionths, of which a price has whole ones per token.
        const parts = [
          [all - cached, input],
          [cached, cachedInput],
          [out, output],
        ];
        const sum = parts.reduce(
          (total, [count, [whole, fraction]]) =>
            total + BigInt(count) * (BigInt(whole) * 1_000_000n + BigInt(fraction)),
          0n,
        );
        const charged = limiter.get("a");
        // Usage that is 0 was not said: then nothing differs, since the estimate is the same.
        assert.equal(BigInt(charged), (sum + 999_999n) / 1_000_000n);
        limiter[Symbol.dispose]();
      },
    ),
  );
});
