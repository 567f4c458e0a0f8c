// The SDKs of OpenAI and Anthropic take budgetFetch as their fetch: results, streams, retries and denials are theirs.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import Anthropic, { RateLimitError as AnthropicRateLimitError } from "@anthropic-ai/sdk";
import OpenAI, { RateLimitError } from "openai";
import { BudgetDenied, budgetFetch } from "tollgate/ai";
import { startProvider } from "./lib/provider.mjs";
import { countsOf, priceOf, setting } from "./lib/setting.mjs";

let provider;
before(async () => {
  provider = await startProvider();
});
after(() => provider.stop());
beforeEach(() => {
  provider.ledger.length = 0;
  provider.requests.length = 0;
});

/** What the provider counted in all calls. */
function counted(model) {
  const sum = (field) => provider.ledger.reduce((total, call) => total + call[field], 0);
  const [input, output] = [sum("input"), sum("output")];
  const usd = provider.ledger.reduce((total, call) => total + priceOf(model, call), 0);
  const requests = provider.ledger.length;
  return { requests, tokens: input + output, inputTokens: input, outputTokens: output, usd, running: 0 };
}

const content = (plan) => JSON.stringify(plan);
const messages = (plan) => [{ role: "user", content: content(plan) }];
const tight = {
  policies: [{ name: "outputTokens", algorithm: "token_bucket", capacity: 100, refillRate: 1 }],
};

/** A limiter, and the options of a client of it. */
function budgeted(more = {}, policies = undefined) {
  const { limiter, options, time } = setting(policies);
  if (policies !== undefined) delete options.prices;
  return { limiter, time, client: { apiKey: "key", fetch: budgetFetch({ ...options, ...more }) } };
}

describe("openai", () => {
  const clientOf = ({ client }) => new OpenAI({ ...client, baseURL: provider.url });

  test("chat completions, responses and embeddings", async () => {
    const setting = budgeted();
    const client = clientOf(setting);
    const chat = { model: "gpt-5", messages: messages({ output: 21 }) };
    const completion = await client.chat.completions.create(chat);
    assert.equal(completion.choices[0].message.content.length, 84);
    let text = "";
    for await (const { choices } of await client.chat.completions.create({ ...chat, stream: true }))
      text += choices[0].delta.content ?? "";
    assert.equal(text.length, 84);
    assert.equal(
      (await client.responses.create({ model: "gpt-5", input: content({ output: 4 }) })).output_text.length,
      16,
    );
    const stream = await client.responses.create({
      model: "gpt-5",
      input: content({ output: 5 }),
      stream: true,
    });
    const types = [];
    for await (const { type } of stream) types.push(type);
    assert.equal(types.at(-1), "response.completed");
    assert.deepEqual(countsOf(setting.limiter), counted("gpt-5"));
    assert.equal(provider.ledger.length, 4);
    await client.embeddings.create({ model: "embedder", input: "hello", encoding_format: "float" });
    assert.equal(setting.limiter.get("user:42", "requests"), 5);
    assert.deepEqual((await client.models.list()).data, []);
    assert.equal(setting.limiter.get("user:42", "requests"), 5);
  });

  test("a 429 of the provider is tried again, and charged once", async () => {
    const setting = budgeted();
    const chat = { model: "gpt-5", messages: messages({ output: 6, fail: 429, times: 2, id: "openai" }) };
    await clientOf(setting).chat.completions.create(chat);
    assert.equal(provider.failed.get("openai"), 3);
    assert.deepEqual(countsOf(setting.limiter), counted("gpt-5"));
  });

  test("a loop that is left costs what was delivered", async () => {
    const setting = budgeted();
    const chat = { model: "gpt-5", messages: messages({ output: 90, stall: 30 }), stream: true };
    let delivered = 0;
    for await (const { choices } of await clientOf(setting).chat.completions.create(chat)) {
      delivered += choices[0].delta.content.length / 4;
      if (delivered === 30) break;
    }
    const { outputTokens, running } = countsOf(setting.limiter);
    assert.ok(outputTokens >= 30 && outputTokens < 90);
    assert.equal(running, 0);
  });

  test("a denied call is its RateLimitError at once", async () => {
    const setting = budgeted({}, tight);
    const chat = { model: "gpt-5", messages: messages({ output: 90 }), max_completion_tokens: 90 };
    await clientOf(setting).chat.completions.create(chat);
    await assert.rejects(clientOf(setting).chat.completions.create(chat), (error) => {
      assert.ok(error instanceof RateLimitError);
      assert.deepEqual(
        [error.status, error.code, error.headers.get("retry-after")],
        [429, "budget_denied", "80"],
      );
      assert.match(
        error.message,
        /the budget denies the call by outputTokens: try again in 1 minute 20 seconds/,
      );
      return true;
    });
    assert.equal(provider.requests.length, 1);
  });

  test("with onDenied: throw, the cause of its error is the denial", async () => {
    const setting = budgeted({ onDenied: "throw" }, tight);
    const chat = { model: "gpt-5", messages: messages({ output: 90 }), max_completion_tokens: 101 };
    await assert.rejects(clientOf(setting).chat.completions.create(chat, { maxRetries: 0 }), (error) => {
      assert.ok(error.cause instanceof BudgetDenied);
      return true;
    });
  });
});

describe("@anthropic-ai/sdk", () => {
  const clientOf = ({ client }) => new Anthropic({ ...client, baseURL: provider.url.replace("/v1", "") });
  const asked = (plan) => ({ model: "claude-5", max_tokens: 90, messages: messages(plan) });

  test("messages and streams", async () => {
    const setting = budgeted();
    const client = clientOf(setting);
    const { content: parts } = await client.messages.create(asked({ output: 13, cached: 2 }));
    assert.equal(parts[0].text.length, 52);
    const message = await client.messages.stream(asked({ output: 17 })).finalMessage();
    assert.deepEqual([message.content[0].text.length, message.usage.output_tokens], [68, 17]);
    const { usd: _, ...counts } = countsOf(setting.limiter);
    const { usd: __, ...expected } = counted("claude-5");
    assert.deepEqual(counts, expected);
    const price = provider.ledger.reduce(
      (sum, { input, output, plan }) => sum + priceOf("claude-5", { input, cached: plan.cached, output }),
      0,
    );
    assert.equal(setting.limiter.get("user:42", "usd"), price);
  });

  test("a 529 of the provider is tried again, and charged once; a stream that is aborted by its text", async () => {
    const setting = budgeted();
    const client = clientOf(setting);
    await client.messages.create(asked({ output: 6, fail: 529, times: 1, id: "anthropic" }));
    assert.deepEqual(countsOf(setting.limiter), counted("claude-5"));
    const { outputTokens } = countsOf(setting.limiter);
    const stream = client.messages.stream(asked({ output: 80, stall: 25 }));
    stream.on("text", (_, text) => text.length === 100 && stream.abort());
    await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
    const more = countsOf(setting.limiter).outputTokens - outputTokens;
    assert.ok(more >= 25 && more < 80, `${more}`);
  });

  test("a denied call is its RateLimitError at once", async () => {
    const setting = budgeted({}, tight);
    await assert.rejects(clientOf(setting).messages.create({ ...asked({}), max_tokens: 101 }), (error) => {
      assert.ok(error instanceof AnthropicRateLimitError);
      assert.match(
        error.message,
        /never allows the call by outputTokens: it may use 101 of 100 output tokens/,
      );
      return true;
    });
    assert.equal(provider.requests.length, 0);
  });
});
