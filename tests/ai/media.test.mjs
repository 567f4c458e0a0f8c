// Images, sound, forms and batches are charged by what they say, and otherwise as reserved.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { generateImage, wrapImageModel } from "ai";
import OpenAI, { toFile } from "openai";
import { RateLimiter } from "tollgate";
import { budget, budgetFetch, budgetRun } from "tollgate/ai";
import { api, of, post, provider } from "./lib/asked.mjs";
import { countsOf, policies, prices, setting } from "./lib/setting.mjs";

describe("images", () => {
  test("without usage cost what was reserved for them, and by the image if that has a price", async () => {
    const { limiter, options } = setting();
    const answer = { data: [{ b64_json: "A".repeat(2_000) }, { b64_json: "A".repeat(2_000) }] };
    const body = { model: "gpt-5", prompt: "a cat", n: 2 };
    const estimate = { outputTokens: 6_000 };
    await post(budgetFetch({ ...options, estimate, ...provider(answer) }), "images/generations", body);
    assert.equal(countsOf(limiter).outputTokens, 6_000);
    const priced = { "gpt-5": { input: "0", output: "0", uses: { images: "0.04" } } };
    const fetch = budgetFetch({ ...options, key: "b", prices: priced, ...provider(answer) });
    await post(fetch, "images/generations", body);
    assert.equal(limiter.get("b", "usd"), 80_000);
    const one = budgetFetch({
      ...options,
      key: "c",
      prices: priced,
      ...provider({ data: answer.data.slice(1) }),
    });
    await post(one, "images/generations", body);
    assert.equal(limiter.get("c", "usd"), 40_000);
  });

  test("of the AI SDK without usage cost what was reserved for them", async () => {
    const { limiter, options } = setting();
    const model = (usage) => ({
      specificationVersion: "v4",
      provider: "fake",
      modelId: "gpt-5",
      maxImagesPerCall: 4,
      async doGenerate() {
        const response = { timestamp: new Date(0), modelId: "gpt-5", headers: undefined };
        return { images: ["A".repeat(200)], warnings: [], response, usage };
      },
    });
    for (const [key, usage, charged] of [
      ["a", undefined, 6_000],
      ["b", { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined }, 6_000],
      ["c", { inputTokens: 9, outputTokens: 1_056, totalTokens: 1_065 }, 1_056],
    ]) {
      const middleware = budget({ ...options, key, estimate: { outputTokens: 6_000 } });
      await generateImage({ model: wrapImageModel({ model: model(usage), middleware }), prompt: "a cat" });
      assert.equal(limiter.get(key, "outputTokens"), charged);
    }
  });
});

test("a form is read: its model, its prompt and its files", async () => {
  const { options } = setting();
  const calls = [];
  const key = (call) => String(calls.push(call));
  const estimate = { outputTokens: 5 };
  const { sent, fetch } = provider({ text: "hello", usage: { type: "duration", seconds: 12.2 } });
  const priced = { "whisper-1": { input: "0", output: "0", uses: { seconds: "0.0001" } } };
  const { limiter } = options;
  const limited = budgetFetch({ ...options, key, estimate, prices: priced, fetch });
  const form = new FormData();
  form.set("model", "whisper-1");
  form.set("prompt", "words");
  form.set("file", new Blob([Buffer.alloc(100_000)]), "speech.mp3");
  const url = `${api}/audio/transcriptions`;
  await limited(url, { method: "POST", body: form });
  await limited(new Request(url, { method: "POST", body: form }));
  assert.deepEqual(
    calls.map(({ model, inputTokens }) => [model, inputTokens]),
    [
      ["whisper-1", 502],
      ["whisper-1", 502],
    ],
  );
  // A started second counts.
  assert.deepEqual([limiter.get("1", "usd"), limiter.get("2", "usd")], [1_300, 1_300]);
  const passed = await new Request(...sent[1]).formData();
  assert.equal((await passed.get("file").arrayBuffer()).byteLength, 100_000);
});

test("images, sound and moderations of OpenAI's SDK: its forms and binary responses are its own", async () => {
  const { limiter, options } = setting();
  const answers = {
    "/v1/images/generations": () =>
      Response.json({ data: [{}], usage: { input_tokens: 9, output_tokens: 1_056 } }),
    "/v1/images/edits": () => Response.json({ data: [{}], usage: { input_tokens: 90, output_tokens: 272 } }),
    "/v1/audio/transcriptions": () =>
      Response.json({ text: "hello", usage: { type: "tokens", input_tokens: 40, output_tokens: 3 } }),
    "/v1/audio/speech": () => new Response("sound", { headers: { "Content-Type": "audio/mpeg" } }),
    "/v1/moderations": () => Response.json({ results: [] }),
  };
  const { sent, fetch } = provider((_, input) => answers[new URL(input).pathname]?.() ?? new Response());
  const estimate = { outputTokens: 700 };
  const client = new OpenAI({
    apiKey: "key",
    baseURL: api,
    fetch: budgetFetch({ ...options, estimate, fetch }),
  });
  const file = await toFile(Buffer.alloc(1_000), "file.bin");
  const total = () => countsOf(limiter).outputTokens;
  await client.images.generate({ model: "gpt-5", prompt: "a cat" });
  assert.equal(total(), 1_056);
  await client.images.edit({ model: "gpt-5", prompt: "a dog", image: file });
  assert.equal(total(), 1_328);
  assert.equal((await client.audio.transcriptions.create({ model: "gpt-5", file })).text, "hello");
  assert.equal(total(), 1_331);
  const speech = await client.audio.speech.create({ model: "gpt-5", input: "hello", voice: "alloy" });
  assert.equal(await speech.text(), "sound");
  assert.equal(total(), 2_031);
  await client.moderations.create({ input: "hello" });
  // The SDK also asks for "data:," once, to know whether fetch takes forms.
  const posts = sent.filter(([, init]) => init?.method?.toUpperCase() === "POST").length;
  assert.deepEqual([posts, countsOf(limiter).requests, total()], [5, 4, 2_031]);
});

describe("a batch", () => {
  const half = { "claude-5": { input: "3", output: "15", tiers: { batch: "0.5" } } };

  test("of messages is charged by its results, at the price of batches", async () => {
    const { limiter, options, time } = setting();
    const asked = (number, model = "claude-5") => ({
      custom_id: String(number),
      params: { model, max_tokens: 100, messages: [{ role: "user", content: "abc" }] },
    });
    const results = [
      {
        custom_id: "1",
        result: { type: "succeeded", message: { usage: { input_tokens: 11, output_tokens: 7 } } },
      },
      { custom_id: "2", result: { type: "errored", error: { type: "invalid_request" } } },
      {
        custom_id: "3",
        result: { type: "succeeded", message: { usage: { input_tokens: 30, output_tokens: 2 } } },
      },
    ];
    const answers = [
      { id: "msgbatch_1", type: "message_batch", processing_status: "in_progress" },
      { id: "msgbatch_1", type: "message_batch", processing_status: "ended" },
      () =>
        new Response(results.map((each) => JSON.stringify(each)).join("\n"), {
          headers: { "Content-Type": "application/x-jsonl" },
        }),
    ];
    const next = () => {
      const answer = answers.shift();
      return typeof answer === "function" ? answer() : answer;
    };
    const fetch = budgetFetch({ ...options, prices: half, ...provider(next) });
    const client = new Anthropic({ apiKey: "key", baseURL: "https://api.example.com", fetch });
    const { id } = await client.messages.batches.create({
      requests: [1, 2, 3].map((number) => asked(number)),
    });
    // Three inputs of a token, and three outputs of at most 100: at half the price.
    assert.deepEqual(
      [countsOf(limiter).outputTokens, countsOf(limiter).usd],
      [300, Math.ceil((3 * 3 + 300 * 15) / 2)],
    );
    await time.move(200_000);
    await client.messages.batches.retrieve(id);
    const decoder = await fetch(`https://api.example.com/v1/messages/batches/${id}/results`);
    assert.equal((await decoder.text()).split("\n").length, 3);
    const counts = countsOf(limiter);
    assert.deepEqual([counts.inputTokens, counts.outputTokens, counts.running], [41, 9, 0]);
    assert.equal(counts.usd, (41 * 3 + 9 * 15) / 2);
    await assert.rejects(
      client.messages.batches.create({ requests: [asked(1), asked(2, "gpt-5")] }),
      /a batch of the models claude-5, gpt-5 cannot be charged; send one for each model/,
    );
  });

  test("of a file needs an estimate, and is charged by the usage of the batch", async () => {
    const { limiter, options } = setting();
    const prices = { "": { input: "2", output: "8", tiers: { batch: "0.5" } } };
    const body = { input_file_id: "file_1", endpoint: "/v1/chat/completions", completion_window: "24h" };
    const refused = await post(budgetFetch({ ...options, prices, ...provider() }), "batches", body);
    assert.equal(refused.status, 400);
    assert.match(
      (await refused.json()).error.message,
      /^estimate: nothing in the request says how much it may use/,
    );
    const answers = [
      { id: "batch_1", object: "batch", status: "validating" },
      {
        id: "batch_1",
        object: "batch",
        status: "completed",
        usage: { input_tokens: 901, output_tokens: 50, total_tokens: 951 },
      },
    ];
    const estimate = { inputTokens: 1_000, outputTokens: 1_000 };
    const fetch = budgetFetch({ ...options, prices, estimate, ...provider(() => answers.shift()) });
    const client = new OpenAI({ apiKey: "key", baseURL: api, fetch });
    const { id } = await client.batches.create(body);
    assert.equal(countsOf(limiter).usd, 5_000);
    await client.batches.retrieve(id);
    const { inputTokens, outputTokens, usd, running } = countsOf(limiter);
    assert.deepEqual([inputTokens, outputTokens, usd, running], [901, 50, 1_101, 0]);
  });

  test("counts where only calls are limited, without an estimate", async () => {
    const requests = { name: "requests", algorithm: "fix_window", limit: 2, scale: "30d" };
    const limiter = new RateLimiter(requests);
    const fetch = budgetFetch({ limiter, key: "a", ...provider({ client_secret: "x" }) });
    for (const status of [200, 200, 429])
      assert.equal((await post(fetch, "realtime/client_secrets", { session: {} })).status, status);
  });
});

test("a call whose key was evicted from a full limiter is charged again, as reserved or as used", async () => {
  for (const [report, charged] of [
    [() => {}, 500],
    [({ report }) => report({ inputTokens: 5, outputTokens: 7 }), 7],
  ]) {
    const limiter = new RateLimiter(policies(), { maxKeys: 1, onFull: "evict" });
    const run = budgetRun({ limiter, key: ({ params }) => params.model, prices });
    await run(async (use) => {
      await run(() => {}, { ...of, model: "claude-5" });
      report(use);
    }, of);
    assert.equal(limiter.get("gpt-5", "outputTokens"), charged);
  }
});
