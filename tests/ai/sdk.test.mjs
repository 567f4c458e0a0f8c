// budget charges the calls of both majors of the AI SDK: whole responses, streams, tools, objects and embeddings.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import * as current from "ai";
import * as former from "ai-6";
import { BudgetDenied, budget, budgetRun } from "tollgate/ai";
import { embeddingModel, languageModel } from "./lib/model.mjs";
import { startProvider } from "./lib/provider.mjs";
import { countsOf, priceOf, setting } from "./lib/setting.mjs";

let provider;
before(async () => {
  provider = await startProvider();
});
after(() => provider.stop());
beforeEach(() => {
  provider.ledger.length = 0;
});

const nothing = { requests: 0, tokens: 0, inputTokens: 0, outputTokens: 0, usd: 0, running: 0 };

for (const [name, sdk, version] of [
  ["ai 7", current, "v4"],
  ["ai 6", former, "v3"],
])
  describe(name, () => {
    const { generateText, generateObject, streamText, streamObject, embed, embedMany, jsonSchema, tool } =
      sdk;
    const { wrapLanguageModel, wrapEmbeddingModel } = sdk;

    /** A model with a budget. */
    function budgeted(more = {}, options = setting(more).options) {
      const model = languageModel(provider.url, version, sdk.APICallError);
      const middleware = budget({ ...options, ...more.options });
      return { ...options, middleware, model: wrapLanguageModel({ model, middleware }) };
    }
    const prompt = (plan) => JSON.stringify(plan);
    /** What the provider counted in all calls. */
    function counted() {
      const sum = (field) => provider.ledger.reduce((total, call) => total + call[field], 0);
      const [input, output] = [sum("input"), sum("output")];
      const usd = provider.ledger.reduce((total, call) => total + priceOf("gpt-5", call), 0);
      const requests = provider.ledger.length;
      return { requests, tokens: input + output, inputTokens: input, outputTokens: output, usd, running: 0 };
    }

    test("generateText: what the provider says is charged", async () => {
      const { model, limiter } = budgeted();
      const { text } = await generateText({ model, prompt: prompt({ output: 12 }) });
      assert.equal(text, "word".repeat(12));
      assert.equal(provider.ledger[0].output, 12);
      assert.deepEqual(countsOf(limiter), counted());
    });

    test("streamText: what the provider says is charged, when the stream has ended", async () => {
      const { model, limiter } = budgeted();
      const result = streamText({ model, prompt: prompt({ output: 30, perEvent: 4 }), maxOutputTokens: 100 });
      let text = "";
      for await (const piece of result.textStream) text += piece;
      assert.equal(text.length, 120);
      assert.deepEqual(countsOf(limiter), counted());
    });

    test("tools: each step of an agent is a call", async () => {
      const weather = tool({
        inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
        execute: async ({ city }) => `${city}: snow`,
      });
      const stopWhen = sdk.stepCountIs?.(3) ?? sdk.isStepCount(3);
      const { model, limiter } = budgeted();
      const asked = { model, tools: { weather }, stopWhen, prompt: prompt({ output: 9 }) };
      const { steps } = await generateText(asked);
      assert.equal(steps.length, 2);
      const stream = streamText(asked);
      await stream.consumeStream();
      assert.equal(provider.ledger.length, 4);
      assert.deepEqual(countsOf(limiter), counted());
    });

    test("tools: the usage that the SDK sums is charged once, by its report or step by step", async () => {
      const weather = tool({
        inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
        execute: async ({ city }) => `${city}: snow`,
      });
      const stopWhen = sdk.stepCountIs?.(3) ?? sdk.isStepCount(3);
      const model = languageModel(provider.url, version, sdk.APICallError);
      const asked = { model, tools: { weather }, stopWhen, prompt: prompt({ output: 9, cached: 2 }) };
      const { limiter, options } = setting();
      const run = budgetRun({ ...options, estimate: { inputTokens: 500, outputTokens: 500 } });
      await run(
        async ({ report }) => {
          const { steps, usage, totalUsage } = await generateText(asked);
          assert.equal(steps.length, 2);
          for (const step of steps) report(step.usage);
          report(totalUsage ?? usage);
        },
        { model: "gpt-5" },
      );
      const whole = provider.ledger.splice(0);
      const sum = (calls, of) => calls.reduce((total, call) => total + of(call), 0);
      const priced = (calls) =>
        // The price of a sum is rounded up once.
        priceOf("gpt-5", {
          input: sum(calls, ({ input }) => input),
          cached: sum(calls, ({ plan }) => plan.cached),
          output: sum(calls, ({ output }) => output),
        });
      assert.equal(
        countsOf(limiter).tokens,
        sum(whole, ({ input, output }) => input + output),
      );
      assert.equal(countsOf(limiter).usd, priced(whole));
      const { limiter: other, options: more } = setting();
      await budgetRun({ ...more, estimate: { inputTokens: 500, outputTokens: 500 } })(
        async ({ add }) => {
          const { steps } = await generateText(asked);
          for (const { usage } of steps) add(usage);
        },
        { model: "gpt-5" },
      );
      assert.equal(countsOf(other).usd, priced(provider.ledger));
    });

    test("objects: a response that does not fit the schema is charged too", async () => {
      const { model, limiter } = budgeted();
      const schema = jsonSchema({ type: "object", properties: {} });
      await assert.rejects(generateObject({ model, schema, prompt: prompt({ output: 5 }) }));
      const { partialObjectStream } = streamObject({
        model,
        schema,
        prompt: prompt({ output: 6 }),
        onError() {},
      });
      for await (const _ of partialObjectStream);
      assert.equal(provider.ledger.length, 2);
      assert.deepEqual(countsOf(limiter), counted());
    });

    test("embed and embedMany: their input is charged", async () => {
      const { options, limiter } = setting();
      const middleware = budget(options);
      const model = wrapEmbeddingModel({ model: embeddingModel(provider.url, version), middleware });
      await embed({ model, value: "a sentence to embed" });
      await embedMany({ model, values: ["one", "another"] });
      const tokens = provider.ledger.reduce((sum, call) => sum + call.input, 0);
      assert.deepEqual(countsOf(limiter), { ...nothing, requests: 2, tokens, inputTokens: tokens, usd: 2 });
    });

    test("a 429 in the middle of a conversation is tried again by the SDK, and charged once", async () => {
      const { model, limiter } = budgeted();
      await generateText({ model, prompt: prompt({ output: 5 }) });
      const id = `conversation ${name}`;
      await generateText({ model, prompt: prompt({ output: 7, fail: 429, times: 2, id }) });
      const result = streamText({ model, prompt: prompt({ output: 8, fail: 503, times: 1, id: `${id} s` }) });
      await result.consumeStream();
      assert.deepEqual([provider.failed.get(id), provider.ledger.length], [3, 3]);
      assert.deepEqual(countsOf(limiter), counted());
    });

    test("a call that always fails costs nothing", async () => {
      const { model, limiter } = budgeted();
      const asked = {
        model,
        maxRetries: 0,
        prompt: prompt({ output: 5, fail: 500, times: 99, id: `${name} 500` }),
      };
      await assert.rejects(generateText(asked), /not now/);
      await streamText({ ...asked, onError() {} }).consumeStream();
      assert.deepEqual(countsOf(limiter), nothing);
    });

    test("a stream that is aborted, cut or ends in an error costs what was delivered, at least", async () => {
      for (const plan of [
        { output: 90, stall: 40 },
        { output: 90, cut: 40 },
        { output: 90, error: 40 },
      ]) {
        const { model, limiter } = budgeted();
        const controller = new AbortController();
        const { fullStream } = streamText({
          model,
          prompt: prompt(plan),
          abortSignal: controller.signal,
          onError() {},
        });
        let text = "";
        const read = async () => {
          for await (const part of fullStream) {
            if (part.type === "text-delta") text += part.text;
            if (plan.stall !== undefined && text.length === 160) controller.abort();
          }
        };
        if (plan.cut === undefined) await read();
        else await assert.rejects(read(), /terminated/);
        assert.equal(text.length, 160);
        const { requests, outputTokens, inputTokens, running } = countsOf(limiter);
        assert.ok(outputTokens >= 40 && outputTokens < 80, `${outputTokens}`);
        assert.ok(inputTokens >= provider.ledger.at(-1).input);
        assert.deepEqual([requests, running], [1, 0]);
      }
    });

    test("a denied call rejects with the decision, is not tried again, and calls onDenied", async () => {
      const denials = [];
      const { limiter, options } = setting({
        policies: [{ name: "tokens", algorithm: "fix_window", limit: 100, scale: "30d" }],
      });
      const { prices: _, ...rest } = options;
      const { model } = budgeted({ options: { onDenied: (denied) => void denials.push(denied) } }, rest);
      await generateText({ model, prompt: prompt({ output: 60 }), maxOutputTokens: 60 });
      const asked = { model, prompt: prompt({ output: 60 }), maxOutputTokens: 60 };
      await assert.rejects(generateText(asked), (error) => {
        assert.ok(error instanceof BudgetDenied);
        assert.equal(error.decision.allowed, false);
        assert.equal(error.key, "user:42");
        assert.ok(error.retryAfter > 0 && error.reserved.tokens > 60);
        return true;
      });
      assert.equal(denials.length, 1);
      assert.equal(provider.ledger.length, 1);
      assert.equal(limiter.get("user:42"), provider.ledger[0].input + 60);
    });

    test("a call waits until others have settled", async () => {
      const slots = { name: "running", algorithm: "concurrency", limit: 1 };
      const { limiter, options } = setting({ policies: [slots] });
      const { prices: _, ...rest } = options;
      const { model } = budgeted({ options: { wait: "30s" } }, rest);
      const texts = await Promise.all(
        [3, 4, 5].map((output) => generateText({ model, prompt: prompt({ output }) })),
      );
      assert.deepEqual(
        texts.map(({ text }) => text.length),
        [12, 16, 20],
      );
      assert.equal(limiter.get("user:42"), 0);
    });

    test("the input of a tool is charged once, whether it was streamed or not", async () => {
      const input = JSON.stringify({ city: "Oslo".repeat(30) });
      const call = { type: "tool-call", toolCallId: "1", toolName: "weather", input };
      const streamed = [
        { type: "tool-input-start", id: "1", toolName: "weather" },
        { type: "tool-input-delta", id: "1", delta: input },
        { type: "tool-input-end", id: "1" },
      ];
      for (const parts of [[call], [...streamed, call]]) {
        const { limiter, options } = setting();
        const { stream } = await budget(options).wrapStream({
          model: { modelId: "gpt-5" },
          params: { prompt: [] },
          doStream: async () => ({ stream: ReadableStream.from(parts) }),
        });
        for await (const _ of stream);
        assert.equal(countsOf(limiter).outputTokens, Math.ceil(input.length / 3));
      }
    });

    test("a call whose response the SDK cannot read is charged as reserved", async () => {
      const { limiter, options } = setting();
      const error = new sdk.APICallError({
        message: "invalid JSON",
        url: "",
        requestBodyValues: {},
        statusCode: 200,
      });
      const doGenerate = () => Promise.reject(error);
      const model = wrapLanguageModel({
        model: { ...languageModel(provider.url, version, sdk.APICallError), doGenerate },
        middleware: budget(options),
      });
      await assert.rejects(
        generateText({ model, prompt: "hello", maxOutputTokens: 70, maxRetries: 0 }),
        /invalid JSON/,
      );
      assert.equal(countsOf(limiter).outputTokens, 70);
    });

    test("a stream that is interrupted is not trusted with its usage", async () => {
      for (const [finishReason, charged] of [
        [{ unified: "interrupted", raw: "end" }, 100],
        [{ unified: "other", raw: undefined }, 100],
        [{ unified: "other", raw: "odd" }, 1],
        [{ unified: "stop", raw: undefined }, 1],
      ]) {
        const { limiter, options } = setting();
        const parts = [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "abc".repeat(100) },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason, usage: { inputTokens: { total: 5 }, outputTokens: { total: 1 } } },
        ];
        const model = {
          ...languageModel(provider.url, version, sdk.APICallError),
          doStream: async () => ({ stream: ReadableStream.from(parts) }),
        };
        const wrapped = wrapLanguageModel({ model, middleware: budget(options) });
        await streamText({ model: wrapped, prompt: "hello" }).consumeStream();
        assert.equal(countsOf(limiter).outputTokens, charged);
      }
    });
  });
