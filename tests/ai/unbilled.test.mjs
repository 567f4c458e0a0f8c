// Nothing is unbilled: a usage, an endpoint or a body that a budget does not understand is an error, or is charged as
// reserved, and never as nothing.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { budgetFetch, budgetRun, TollgateError } from "tollgate/ai";
import { api, chat, nothing, of, post, provider } from "./lib/asked.mjs";
import { countsOf, policies, setting } from "./lib/setting.mjs";

describe("a usage that is not understood", () => {
  for (const wrong of [
    {},
    null,
    undefined,
    Number.NaN,
    7,
    "usage",
    [],
    { usd: "0.5" },
    { promptTokenCount: 180_000 },
    { inputTokens: 180_000 },
    { outputTokens: 5 },
    { inputTokens: 180_000, outputTokns: 31_000 },
    { inputTokens: Number.NaN, outputTokens: 5 },
    { inputTokens: 5, outputTokens: -1 },
    { inputTokens: 5, outputTokens: "9" },
    { inputTokens: 5, outputTokens: 0.5 },
    { inputTokens: { total: 5 }, outputTokens: {} },
    { prompt_tokens: 5 },
  ])
    test(`${JSON.stringify(wrong) ?? wrong} is an error, and charges the reservation`, async () => {
      const { limiter, options } = setting();
      await budgetRun(options)(({ report }) => {
        assert.throws(() => report(wrong), {
          name: "TollgateError",
          code: "invalid_request",
          message: /^usage/,
        });
      }, of);
      const { inputTokens, outputTokens } = countsOf(limiter);
      assert.deepEqual([inputTokens, outputTokens], [1_000, 500]);
      // The error is the work's own, if it does not catch it.
      await assert.rejects(
        budgetRun({ ...options, key: "b" })(({ report }) => report(wrong), of),
        { code: "invalid_request" },
      );
      assert.equal(limiter.get("b", "outputTokens"), 500);
    });

  test("may be corrected, and costs no less than what was understood", async () => {
    const { limiter, options } = setting();
    const run = budgetRun(options);
    await run(({ report }) => {
      assert.throws(() => report({}));
      report({ inputTokens: 7, outputTokens: 8 });
    }, of);
    assert.equal(countsOf(limiter).tokens, 15);
    await run(({ report }) => {
      report({ inputTokens: 7, outputTokens: 8_000 });
      assert.throws(() => report({}));
    }, of);
    const { inputTokens, outputTokens } = countsOf(limiter);
    assert.deepEqual([inputTokens, outputTokens], [7 + 1_000, 8 + 8_000]);
  });

  test("of Gemini, of an embedding and of no output are understood", async () => {
    for (const [said, input, output] of [
      [
        { promptTokenCount: 70, candidatesTokenCount: 5, thoughtsTokenCount: 20, totalTokenCount: 95 },
        70,
        25,
      ],
      [
        { promptTokenCount: 70, toolUsePromptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 84 },
        79,
        5,
      ],
      [{ promptTokenCount: 70, totalTokenCount: 70 }, 70, 0],
      [{ tokens: 70 }, 70, 0],
      [{ prompt_tokens: 70, total_tokens: 70 }, 70, 0],
      [{ inputTokens: 0, outputTokens: 0 }, 0, 0],
    ]) {
      const { limiter, options } = setting();
      await budgetRun(options)(({ report }) => report(said), of);
      const { inputTokens, outputTokens } = countsOf(limiter);
      assert.deepEqual([inputTokens, outputTokens], [input, output]);
    }
  });

  test("in a response without text costs the reservation", async () => {
    for (const answer of [
      {},
      { usage: null },
      { choices: [] },
      { usage: { prompt_tokens: 5 }, choices: [] },
    ]) {
      const { limiter, options } = setting();
      await post(budgetFetch({ ...options, ...provider(answer) }), "chat/completions", chat);
      assert.equal(countsOf(limiter).outputTokens, 500, JSON.stringify(answer));
    }
  });
});

describe("the usages of several calls", () => {
  const steps = [
    { inputTokens: 100, outputTokens: 20, inputTokenDetails: { cacheReadTokens: 40 } },
    { inputTokens: 130, outputTokens: 7, inputTokenDetails: { cacheReadTokens: 60 } },
  ];

  test("are added, or reported once as their sum", async () => {
    const { limiter, options } = setting();
    const run = budgetRun(options);
    await run(({ add }) => {
      for (const step of steps) add(step);
    }, of);
    const counts = countsOf(limiter);
    assert.deepEqual([counts.inputTokens, counts.outputTokens], [230, 27]);
    // 130 tokens of input, 100 cached ones and 27 of output: 162.5, 12.5 and 270.
    assert.equal(counts.usd, 445);
    await budgetRun({ ...options, key: "b" })(({ report }) => {
      for (const step of steps) report(step);
      report({ inputTokens: 230, outputTokens: 27, inputTokenDetails: { cacheReadTokens: 100 } });
    }, of);
    assert.deepEqual(countsOf(limiter, "b"), counts);
  });

  test("that are not understood charge the reservation, at least", async () => {
    const { limiter, options } = setting();
    await budgetRun(options)(({ add }) => {
      add(steps[0]);
      assert.throws(() => add({}));
      add(steps[1]);
    }, of);
    assert.equal(countsOf(limiter).outputTokens, 500);
  });
});

describe("an endpoint that is not in the table", () => {
  const paths = ["models/x:generateEverything", "agents/7/run", "threads/1/runs", "fine_tuning/jobs", ""];

  test("is a 400 that says so, and is not sent", async () => {
    const { limiter, options } = setting();
    const { sent, fetch } = provider();
    for (const path of paths) {
      const response = await post(budgetFetch({ ...options, fetch }), `${path}?key=secret`, chat);
      assert.equal(response.status, 400);
      const { error } = await response.json();
      assert.deepEqual([error.type, error.code], ["invalid_request_error", "invalid_request"]);
      assert.equal(
        error.message,
        `fetch: POST ${api}/${path} is not in the table of endpoints, so its cost is unknown; set the option onUnknown to "count" or "pass", or to a function`,
      );
    }
    assert.deepEqual([sent.length, countsOf(limiter)], [0, nothing]);
    const throwing = budgetFetch({ ...options, fetch, onDenied: "throw" });
    await assert.rejects(post(throwing, "agents", chat), { name: "TollgateError", code: "invalid_request" });
  });

  test("counts, or passes, if the option says so", async () => {
    const { limiter, options } = setting();
    const { sent, fetch } = provider({ any: "thing" });
    await post(budgetFetch({ ...options, fetch, onUnknown: "pass" }), "agents", chat);
    assert.deepEqual([sent.length, countsOf(limiter)], [1, nothing]);
    await post(budgetFetch({ ...options, fetch, onUnknown: "count" }), "agents", chat);
    const { requests, outputTokens } = countsOf(limiter);
    assert.deepEqual([requests, outputTokens], [1, 500]);
    const sound = provider(() => new Response("sound"));
    const estimate = { inputTokens: 3, outputTokens: 70, usd: "0.5" };
    const counting = budgetFetch({ ...options, ...sound, onUnknown: "count", estimate, key: "b" });
    await counting(`${api}/sing`, { method: "PUT", body: new Uint8Array([1, 2, 3]) });
    assert.deepEqual(countsOf(limiter, "b"), {
      requests: 1,
      tokens: 73,
      inputTokens: 3,
      outputTokens: 70,
      usd: 500_000,
      running: 0,
    });
    const asked = [];
    const onUnknown = (request) => {
      asked.push(request);
      return "pass";
    };
    await post(budgetFetch({ ...options, fetch, onUnknown }), "agents", chat);
    assert.deepEqual(asked, [{ method: "POST", url: `${api}/agents` }]);
    assert.throws(() => budgetFetch({ ...options, onUnknown: "ignore" }), {
      message: /^onUnknown: "ignore" is not "error", "count", "pass" or a function/,
    });
  });

  test("is known to both SDKs at once, not after retries", async () => {
    const { options } = setting();
    const { sent, fetch } = provider();
    const limited = budgetFetch({ ...options, fetch });
    const openai = new OpenAI({ apiKey: "key", baseURL: api, fetch: limited });
    await assert.rejects(openai.post("/agents", { body: chat }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.match(error.message, /is not in the table of endpoints/);
      return true;
    });
    const anthropic = new Anthropic({ apiKey: "key", baseURL: api, fetch: limited });
    await assert.rejects(anthropic.post("/v1/agents", { body: chat }), Anthropic.BadRequestError);
    assert.equal(sent.length, 0);
  });
});

describe("a model without a price", () => {
  test("is a 400 that says so, not a connection error after retries", async () => {
    const { options } = setting();
    const { sent, fetch } = provider();
    const client = new OpenAI({ apiKey: "key", baseURL: api, fetch: budgetFetch({ ...options, fetch }) });
    await assert.rejects(client.chat.completions.create({ ...chat, model: "gpt-6" }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.match(error.message, /prices: "gpt-6" has no price/);
      return true;
    });
    assert.equal(sent.length, 0);
  });

  test("does not hide a limiter that fails, which may be tried again", async () => {
    const { options } = setting();
    for (const error of [new Error("away"), new TollgateError("invalid_state", "unreadable")]) {
      const limiter = { policies: policies(), reserve: () => Promise.reject(error), inc() {} };
      const fetch = budgetFetch({ ...options, limiter, ...provider() });
      await assert.rejects(post(fetch, "chat/completions", chat), error);
    }
  });
});

describe("an address", () => {
  test("is free by its path alone", async () => {
    for (const end of ["?x=/moderations", "#/tokenize", "?/messages/count_tokens", "/", "//"]) {
      const { limiter, options } = setting();
      const fetch = budgetFetch({ ...options, ...provider() });
      await post(fetch, `chat/completions${end}`, chat);
      assert.equal(countsOf(limiter).tokens, 13, end);
    }
  });

  test("may be relative, and one that only looks free is an error", async () => {
    const { limiter, options } = setting();
    const { sent, fetch } = provider();
    const limited = budgetFetch({ ...options, fetch });
    const sent_ = { method: "POST", body: JSON.stringify(chat) };
    await limited("/api/chat/completions", sent_);
    assert.equal(countsOf(limiter).tokens, 13);
    for (const path of ["chat/completions%2Fmoderations", "moderations/x", "moderations;x"])
      assert.equal((await limited(`${api}/${path}`, sent_)).status, 400);
    assert.equal(sent.length, 1);
  });
});

describe("a body", () => {
  const text = JSON.stringify(chat);
  const url = `${api}/chat/completions`;
  const stream = (bytes) => new Blob([bytes]).stream();
  const bodies = {
    "with a byte order mark": [url, { body: `\uFEFF${text}` }],
    "with its bytes": [url, { body: Buffer.from(`\uFEFF${text}`) }],
    "that is gzipped": [url, { body: gzipSync(text), headers: { "Content-Encoding": "gzip" } }],
    "that is deflated twice": [
      url,
      { body: deflateSync(gzipSync(text)), headers: { "content-encoding": "x-gzip, deflate" } },
    ],
    "of a Blob": [url, { body: new Blob([text]) }],
    "of a stream": [url, { body: stream(text), duplex: "half" }],
    "of a stream without duplex": [url, { body: stream(text) }],
    "of a Request without a type": [new Request(url, { method: "POST", body: Buffer.from(text) })],
    "of a Request with another type": [
      new Request(url, { method: "POST", body: text, headers: { "Content-Type": "text/plain" } }),
    ],
    "of a gzipped Request": [
      new Request(url, { method: "POST", body: gzipSync(text), headers: { "Content-Encoding": "gzip" } }),
    ],
    "of a Request whose body is replaced": [new Request(url, { method: "POST", body: "{}" }), { body: text }],
  };
  for (const [name, [input, init]] of Object.entries(bodies))
    test(`${name} is read as the server would, and sent as it is`, async () => {
      const { limiter, options } = setting();
      const { sent, fetch } = provider();
      await budgetFetch({ ...options, fetch })(input, { method: "POST", ...init });
      assert.equal(countsOf(limiter).tokens, 13);
      const whole = new Request(...sent[0]);
      const bytes = Buffer.from(await whole.arrayBuffer());
      const encoding = whole.headers.get("Content-Encoding");
      const expected =
        encoding === "gzip" ? gzipSync(text) : encoding === null ? undefined : deflateSync(gzipSync(text));
      if (expected) assert.ok(bytes.equals(expected));
      else assert.equal(bytes.toString().replace("\uFEFF", ""), text);
    });

  test("of another realm's Request is read too", async () => {
    const { limiter, options } = setting();
    const other = { url, method: "POST", headers: {}, signal: undefined };
    other.clone = () => new Request(url, { method: "POST", body: text });
    const fetch = budgetFetch({ ...options, ...provider() });
    for (const init of [undefined, { method: "POST", body: text }]) await fetch(other, init);
    assert.equal(countsOf(limiter).tokens, 26);
  });

  test("that cannot be read is an error, and nothing is sent", async () => {
    const { limiter, options } = setting();
    const { sent, fetch } = provider();
    const limited = budgetFetch({ ...options, fetch });
    for (const init of [
      {},
      { body: "{" },
      { body: "[]" },
      { body: Buffer.from(text, "utf16le") },
      { body: gzipSync(text) },
      { body: text, headers: { "Content-Encoding": "gzip" } },
      { body: brotliCompressSync(text), headers: { "Content-Encoding": "unknown" } },
      { body: new URLSearchParams({ model: "gpt-5" }) },
    ]) {
      const response = await limited(url, { method: "POST", ...init });
      assert.equal(response.status, 400);
      assert.match((await response.json()).error.message, /cannot be read, so its cost is unknown/);
    }
    assert.deepEqual([sent.length, countsOf(limiter)], [0, nothing]);
  });

  test("that is compressed is asked for its usage too, and sent as it is then", async () => {
    const { limiter, options } = setting();
    const { sent, fetch } = provider();
    const headers = { "Content-Encoding": "gzip", "X-Trace": "7" };
    const streaming = { ...chat, stream: true };
    for (const args of [
      [url, { method: "POST", body: gzipSync(JSON.stringify(streaming)), headers }],
      [new Request(url, { method: "POST", body: gzipSync(JSON.stringify(streaming)), headers })],
    ]) {
      await budgetFetch({ ...options, fetch })(...args);
      const whole = new Request(...sent.at(-1));
      assert.deepEqual([whole.headers.get("Content-Encoding"), whole.headers.get("X-Trace")], [null, "7"]);
      assert.deepEqual(await whole.json(), { ...streaming, stream_options: { include_usage: true } });
    }
    assert.equal(countsOf(limiter).tokens, 26);
  });
});
