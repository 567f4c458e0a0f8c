// A call that is aborted, breaks, thinks without a maximum or goes on in the background costs what the provider may bill.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { APICallError } from "ai";
import { budget, budgetFetch, usd } from "tollgate/ai";
import { api, chat, nothing, post, provider } from "./lib/asked.mjs";
import { countsOf, setting, until } from "./lib/setting.mjs";

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
