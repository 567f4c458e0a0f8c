// Nothing is unbilled: what a budget does not understand is an error, or is charged as reserved, and never as nothing.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import Anthropic from "@anthropic-ai/sdk";
import { APICallError, generateImage, wrapImageModel } from "ai";
import OpenAI, { toFile } from "openai";
import { RateLimiter } from "tollgate";
import { BudgetDenied, budget, budgetFetch, budgetRun, dollars, TollgateError, usd } from "tollgate/ai";
import { countsOf, policies, prices, setting, until } from "./lib/setting.mjs";

const nothing = { requests: 0, tokens: 0, inputTokens: 0, outputTokens: 0, usd: 0, running: 0 };
const of = { model: "gpt-5", inputTokens: 1_000, outputTokens: 500 };
const chat = { model: "gpt-5", messages: [{ role: "user", content: "hello" }], max_tokens: 500 };
const api = "https://api.example.com/v1";
const usage = { prompt_tokens: 9, completion_tokens: 4 };

/** Sends a body as JSON. */
const post = (fetch, path, body, init) =>
  fetch(`${api}/${path}`, { method: "POST", body: JSON.stringify(body), ...init });

/** A `fetch` that remembers what was sent, and answers with a body. */
function provider(answer = { usage }) {
  const sent = [];
  const fetch = async (input, init) => {
    sent.push([input, init]);
    const body = typeof answer === "function" ? answer(sent.length, input, init) : answer;
    return body instanceof Response ? body : Response.json(body);
  };
  // Only `fetch` is spread into options.
  return Object.defineProperty({ fetch }, "sent", { value: sent });
}

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

describe("a call that is aborted", () => {
  /** A provider that does not answer before the abort. */
  const slow = (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

  /** Aborts so many calls before their output. */
  async function aborted(options, count = 1) {
    const controller = new AbortController();
    const fetch = budgetFetch({ ...options, fetch: slow });
    const asked = Array.from({ length: count }, () =>
      post(fetch, "chat/completions", chat, { signal: controller.signal }).catch(() => {}),
    );
    await until(() => options.limiter.get("user:42", "running") === count, "the reservations");
    controller.abort();
    await Promise.all(asked);
  }

  test("before its output costs what it had reserved: 50 of them cost 50 reservations", async () => {
    const { limiter, options } = setting();
    await aborted(options, 50);
    const { requests, outputTokens, running } = countsOf(limiter);
    assert.deepEqual([requests, outputTokens, running], [50, 25_000, 0]);
  });

  test("costs what was delivered if the option says so, which is its input", async () => {
    const { limiter, options } = setting();
    await aborted({ ...options, onAbort: "delivered" });
    const { inputTokens, outputTokens } = countsOf(limiter);
    assert.ok(inputTokens > 0);
    assert.equal(outputTokens, 0);
    assert.throws(() => budgetFetch({ ...options, onAbort: "free" }), {
      message: /^onAbort: "free" is not "reserved" or "delivered"/,
    });
  });

  const event = (data) => Buffer.from(`data: ${JSON.stringify(data)}\n\n`);
  const message = event({
    type: "message_start",
    message: { usage: { input_tokens: 20, output_tokens: 1 } },
  });
  const text = event({ type: "content_block_delta", delta: { type: "text_delta", text: "abc".repeat(60) } });

  for (const [name, events, onAbort, charged] of [
    ["a stream before its text", [message], undefined, 500],
    ["a stream after its text", [message, text], undefined, 60],
    ["a stream after its text, as reserved", [message, text], "reserved", 500],
    ["a stream before its text, as delivered", [message], "delivered", 1],
  ])
    test(`by its reader: ${name}`, async () => {
      const { limiter, options } = setting();
      const source = () =>
        new ReadableStream({
          start(chunks) {
            for (const each of events) chunks.enqueue(each);
          },
        });
      const answer = () => new Response(source(), { headers: { "Content-Type": "text/event-stream" } });
      const fetch = budgetFetch({ ...options, onAbort, ...provider(answer) });
      const response = await post(fetch, "messages", { ...chat, stream: true });
      const reader = response.body.getReader();
      for (const _ of events) await reader.read();
      await reader.cancel();
      const { outputTokens, running } = countsOf(limiter);
      assert.deepEqual([outputTokens, running], [charged, 0]);
    });

  test("of the AI SDK costs what it had reserved too", async () => {
    const { limiter, options } = setting();
    const controller = new AbortController();
    const { signal } = controller;
    const asked = budget(options).wrapGenerate({
      model: { modelId: "gpt-5" },
      params: { prompt: [], maxOutputTokens: 500, abortSignal: signal },
      doGenerate: () => slow(undefined, { signal }),
    });
    await until(() => limiter.get("user:42", "running") === 1, "the reservation");
    controller.abort();
    await assert.rejects(asked);
    assert.equal(countsOf(limiter).outputTokens, 500);
  });
});

describe("a connection", () => {
  /** A provider that takes a request, and closes its connection before it answers. */
  async function closing(work) {
    const server = createServer(async (request) => {
      for await (const _ of request);
      request.socket.destroy();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${server.address().port}/chat/completions`;
    await work(url);
    await new Promise((resolve) => server.close(resolve));
    return url;
  }
  const sent = { method: "POST", body: JSON.stringify(chat) };

  test("that breaks after the request costs what was reserved; one that is refused nothing", async () => {
    const { limiter, options } = setting();
    const limited = budgetFetch(options);
    const url = await closing((url) => assert.rejects(limited(url, sent), TypeError));
    assert.deepEqual([countsOf(limiter).outputTokens, countsOf(limiter).running], [500, 0]);
    await assert.rejects(limited(url, sent), TypeError);
    assert.equal(countsOf(limiter).outputTokens, 500);
  });

  test("of a provider of the AI SDK is the same", async () => {
    const { limiter, options } = setting();
    const asked = (url) =>
      budget(options).wrapGenerate({
        model: { modelId: "gpt-5" },
        params: { prompt: [], maxOutputTokens: 500 },
        doGenerate: () =>
          fetch(url, sent).catch((cause) => {
            throw new APICallError({ message: "Cannot connect to API", url, requestBodyValues: {}, cause });
          }),
      });
    const url = await closing((url) => assert.rejects(asked(url), /Cannot connect/));
    await assert.rejects(asked(url), /Cannot connect/);
    assert.deepEqual([countsOf(limiter).outputTokens, countsOf(limiter).requests], [500, 1]);
  });
});

describe("a model that thinks, without a maximum", () => {
  const thinking = { model: "gpt-5", messages: chat.messages };
  const cent = [{ name: "usd", algorithm: "fix_window", limit: usd("1"), scale: "30d" }];
  /** A provider that thinks for 60,000 tokens. */
  const answer = { usage: { prompt_tokens: 5, completion_tokens: 60_000 } };

  /** How many of 60 calls at once pass a budget of a dollar. */
  async function passed(more) {
    const { limiter, options } = setting({ policies: cent });
    const fetch = budgetFetch({ ...options, ...more, ...provider(answer) });
    const responses = await Promise.all(
      Array.from({ length: 60 }, () => post(fetch, "chat/completions", thinking)),
    );
    const count = responses.filter(({ ok }) => ok).length;
    return [count, limiter.get("user:42"), responses.find(({ ok }) => !ok)];
  }

  test("is a warning that names the model and the option, once", async (t) => {
    const warn = t.mock.method(console, "warn", () => {});
    const [count] = await passed({});
    assert.equal(count, 24);
    const warnings = warn.mock.calls
      .map(({ arguments: [text] }) => text)
      .filter((text) => /thinks/.test(text));
    assert.deepEqual(warnings, [
      'tollgate: "gpt-5" thinks, and a call does not say its most output tokens: 4096 are reserved, and it may use many times as many; set them, or the option maxOutputTokens',
    ]);
  });

  test("is reserved by the default of its model", async () => {
    for (const maxOutputTokens of [60_000, { "gpt-5": 60_000, other: 7 }]) {
      const [count, spent] = await passed({ maxOutputTokens });
      assert.equal(count, 1);
      assert.ok(spent <= usd("1"));
    }
  });

  test("is an error if a maximum is required", async () => {
    const [count, spent, refused] = await passed({ maxOutputTokens: "required" });
    assert.deepEqual([count, spent, refused.status], [0, 0, 400]);
    assert.match(
      (await refused.json()).error.message,
      /the call of "gpt-5" does not say its most output tokens/,
    );
    const { options } = setting();
    const own = budgetFetch({ ...options, ...provider(), maxOutputTokens: "required" });
    assert.equal((await post(own, "chat/completions", chat)).status, 200);
    for (const wrong of [0, -1, "none", { "gpt-5": "9" }, null])
      assert.throws(() => budgetFetch({ ...options, maxOutputTokens: wrong }), {
        message: /^maxOutputTokens: /,
      });
  });
});

describe("a response in the background", () => {
  const asked = { model: "gpt-5", input: "hello", background: true, max_output_tokens: 500 };
  const done = {
    id: "resp_1",
    status: "completed",
    output: [],
    usage: { input_tokens: 9, output_tokens: 700 },
  };
  const queued = { id: "resp_1", status: "queued", output: [], usage: null };

  test("is charged when it is fetched, and reserved until then", async () => {
    const { limiter, options, time } = setting();
    const answers = [queued, { ...queued, status: "in_progress", output: [{ text: "partly" }] }, done, done];
    const fetch = budgetFetch({ ...options, ...provider(() => answers.shift()) });
    const { id } = await (await post(fetch, "responses", asked)).json();
    assert.deepEqual([id, countsOf(limiter).outputTokens, countsOf(limiter).running], ["resp_1", 500, 1]);
    await time.move(240_000);
    assert.equal((await (await fetch(`${api}/responses/resp_1`)).json()).status, "in_progress");
    await time.move(240_000);
    assert.equal(countsOf(limiter).running, 1);
    for (const _ of [1, 2])
      assert.deepEqual(await (await fetch(`${api}/responses/${id}?include=x`)).json(), done);
    const { inputTokens, outputTokens, running } = countsOf(limiter);
    assert.deepEqual([inputTokens, outputTokens, running], [9, 700, 0]);
    assert.equal(time.timers, 0);
  });

  test("that nobody fetches is charged as reserved, and what it used beyond when somebody does", async () => {
    const { limiter, options, time } = setting();
    const answers = [queued, done];
    const fetch = budgetFetch({ ...options, ...provider(() => answers.shift()) });
    await (await post(fetch, "responses", asked)).json();
    await time.move(3_600_000);
    assert.deepEqual([countsOf(limiter).outputTokens, countsOf(limiter).running, time.timers], [500, 0, 0]);
    await (await fetch(`${api}/responses/resp_1`)).json();
    assert.equal(countsOf(limiter).outputTokens, 700);
  });

  test("is charged by its stream, and as reserved if that is left", async () => {
    const stream = (...events) =>
      new Response(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""), {
        headers: { "Content-Type": "text/event-stream" },
      });
    const { limiter, options } = setting();
    const delta = { type: "response.output_text.delta", delta: "abc" };
    const answers = [queued, stream(delta), stream(delta, { type: "response.completed", response: done })];
    const fetch = budgetFetch({ ...options, ...provider(() => answers.shift()) });
    await (await post(fetch, "responses", asked)).json();
    await (await fetch(`${api}/responses/resp_1?stream=true`)).text();
    assert.equal(countsOf(limiter).running, 1);
    const text = await (await fetch(`${api}/responses/resp_1?stream=true`)).text();
    assert.match(text, /response\.completed/);
    assert.deepEqual([countsOf(limiter).outputTokens, countsOf(limiter).running], [700, 0]);
    const left = budgetFetch({ ...options, key: "b", ...provider(() => stream(delta, delta)) });
    const { body } = await post(left, "responses", { ...asked, stream: true });
    const reader = body.getReader();
    await reader.read();
    await reader.cancel();
    assert.equal(limiter.get("b", "outputTokens"), 500);
    const broken = () => {
      const chunks = [Buffer.from(`data: ${JSON.stringify(delta)}\n\n`)];
      const source = new ReadableStream({
        pull: (stream) => (chunks.length > 0 ? stream.enqueue(chunks.pop()) : stream.error(new Error("cut"))),
      });
      return new Response(source, { headers: { "Content-Type": "text/event-stream" } });
    };
    const cut = budgetFetch({ ...options, key: "c", ...provider(broken) });
    const response = await post(cut, "responses", { ...asked, stream: true });
    await assert.rejects(response.text(), /cut/);
    assert.equal(limiter.get("c", "outputTokens"), 500);
  });

  test("that fails costs nothing", async () => {
    const { limiter, options } = setting();
    const answers = [queued, { ...queued, status: "failed", error: { code: "server_error" } }];
    const fetch = budgetFetch({ ...options, ...provider(() => answers.shift()) });
    await (await post(fetch, "responses", asked)).json();
    await (await fetch(`${api}/responses/resp_1`)).json();
    assert.deepEqual(countsOf(limiter), nothing);
  });

  test("keeps a Worker alive until it is known to be one, and no longer", async () => {
    const { options } = setting();
    const promises = [];
    const waitUntil = (promise) => promises.push(promise);
    await post(budgetFetch({ ...options, waitUntil, ...provider(queued) }), "responses", asked);
    await Promise.all(promises);
    assert.equal(promises.length, 1);
  });
});

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
