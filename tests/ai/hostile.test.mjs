// A provider that lies in every field changes no response, and is never free.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { budget, budgetFetch } from "tollgate/ai";
import fc from "../lib/properties.mjs";
import { bills, prices } from "./lib/bills.mjs";
import { countsOf, policies } from "./lib/setting.mjs";

/** What is no count. */
const lie = fc.oneof(
  fc.constantFrom(null, true, "9", "", -1, 0.5, -0.5, 1e300, [], {}, [5], { total: 5 }, "NaN"),
  fc.integer({ max: -1 }),
);

/** A use that all endpoints can say, in part. */
const use = {
  cached: 3,
  written: 5,
  long: 2,
  audioIn: 1,
  imageIn: 1,
  output: 40,
  audioOut: 1,
  imageOut: 1,
  searches: 1,
};
const truth = { ...use, input: 50 };

/** Tells lies instead of numbers, and of objects in a usage. `next` returns a lie, or `undefined` for the truth. */
function lied(value, next, isUsage = false) {
  const isNumber = typeof value === "number";
  if (isUsage && (isNumber || typeof value === "object")) {
    const said = next();
    if (said !== undefined) return said;
  }
  if (Array.isArray(value)) return value.map((each) => lied(each, next, isUsage));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      lied(each, next, isUsage || ["usage", "usageMetadata", "meta", "tool_usage"].includes(name)),
    ]),
  );
}

/** A teller of lies: a part of what it is asked for is true. */
const lies = fc
  .tuple(fc.array(fc.option(lie, { nil: undefined, freq: 4 }), { minLength: 1, maxLength: 40 }))
  .map(([all]) => {
    let at = 0;
    return () => all[at++ % all.length];
  });

const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

describe("a provider that lies in every field", () => {
  for (const [pattern, bill] of Object.entries(bills))
    test(pattern, async () => {
      const hasOutput = bill.says.includes("output");
      const kinds = [bill.body && "json", bill.events && "stream"].filter(Boolean);
      await fc.assert(
        fc.asyncProperty(lies, fc.constantFrom(...kinds), async (next, kind) => {
          const limiter = new RateLimiter(policies());
          const text =
            kind === "json"
              ? JSON.stringify(lied(bill.body(truth), next))
              : bill
                  .events(truth)
                  .map(
                    (event) =>
                      `data: ${typeof event === "string" ? event : JSON.stringify(lied(event, next))}\n\n`,
                  )
                  .join("");
          const type = kind === "json" ? "application/json" : "text/event-stream";
          const answers = [new Response(text, { headers: { "Content-Type": type } })];
          const estimate = { inputTokens: 10, outputTokens: hasOutput ? 30 : 0 };
          const fetch = budgetFetch({
            limiter,
            key: "a",
            prices,
            estimate,
            fetch: async () => answers.shift(),
          });
          const url = pattern.startsWith(":")
            ? `https://x/v1beta/models/m${pattern}`
            : `https://x/v1/${pattern}`;
          // With a stream the usage is asked for, so that no event is left out.
          const more = kind === "stream" && { stream: true, stream_options: { include_usage: true } };
          const body = JSON.stringify({ ...bill.request, ...bill.form, ...more, model: "m" });
          const response = await fetch(url, { method: "POST", body });
          assert.equal(await response.text(), text);
          for (const { path, text } of bill.fetched?.(truth) ?? []) {
            const told = text
              .split("\n")
              .map((line) => (line === "" ? "" : JSON.stringify(lied(JSON.parse(line), next))));
            answers.push(new Response(told.join("\n"), { headers: { "Content-Type": "application/json" } }));
            assert.equal(await (await fetch(`${url}/job_1${path}`)).text(), told.join("\n"));
          }
          const counts = countsOf(limiter, "a");
          for (const [name, value] of Object.entries(counts)) assert.ok(isCount(value), `${name}: ${value}`);
          const { requests, inputTokens, outputTokens, usd, running } = counts;
          assert.equal(requests, 1);
          assert.equal(running, 0);
          assert.ok(inputTokens > 0 && usd > 0);
          if (hasOutput) assert.ok(outputTokens > 0);
        }),
        { numRuns: 60 },
      );
    });
});

test("a model of the AI SDK that lies in every field", async () => {
  const said = {
    inputTokens: { total: 50, noCache: 40, cacheRead: 5, cacheWrite: 5 },
    outputTokens: { total: 9, text: 5, reasoning: 4 },
    raw: { cache_creation: { ephemeral_1h_input_tokens: 5 }, server_tool_use: { web_search_requests: 1 } },
  };
  await fc.assert(
    fc.asyncProperty(lies, fc.boolean(), fc.boolean(), async (next, isStream, hasText) => {
      const limiter = new RateLimiter(policies());
      const { wrapGenerate, wrapStream } = budget({ limiter, key: "a", prices });
      const usage = lied(said, next, true);
      const params = {
        prompt: [{ role: "user", content: [{ type: "text", text: "hello" }] }],
        maxOutputTokens: 30,
      };
      const model = { modelId: "m" };
      const text = hasText ? [{ type: "text", text: "hello" }] : [];
      if (isStream) {
        const parts = [
          ...text.map(({ text }) => ({ type: "text-delta", id: "1", delta: text })),
          { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
        ];
        const doStream = async () => ({ stream: ReadableStream.from(parts) });
        const { stream } = await wrapStream({ model, params, doStream });
        const passed = [];
        for await (const part of stream) passed.push(part);
        assert.deepEqual(passed, parts);
      } else {
        const result = { content: text, usage };
        assert.equal(await wrapGenerate({ model, params, doGenerate: async () => result }), result);
      }
      const counts = countsOf(limiter, "a");
      for (const [name, value] of Object.entries(counts)) assert.ok(isCount(value), `${name}: ${value}`);
      assert.ok(counts.inputTokens > 0 && counts.outputTokens > 0 && counts.usd > 0);
      assert.deepEqual([counts.requests, counts.running], [1, 0]);
    }),
  );
});
