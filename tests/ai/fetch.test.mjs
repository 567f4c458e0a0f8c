// budgetFetch charges what the provider says, to the token, and otherwise no less than what was delivered.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { throttledFetch } from "tollgate";
import { BudgetDenied, budgetFetch } from "tollgate/ai";
import { startProvider, textOf, tokensOf } from "./lib/provider.mjs";
import { countsOf, priceOf, setting, until } from "./lib/setting.mjs";

let provider;
before(async () => {
  provider = await startProvider();
});
after(() => provider.stop());
beforeEach(() => {
  provider.ledger.length = 0;
  provider.requests.length = 0;
});

/** The body of a request for each API. */
const apis = {
  "/chat/completions": (content, more) => ({
    model: "gpt-5",
    messages: [{ role: "user", content }],
    max_tokens: 500,
    ...more,
  }),
  "/responses": (input, more) => ({ model: "gpt-5", input, max_output_tokens: 500, ...more }),
  "/messages": (content, more) => ({
    model: "claude-5",
    messages: [{ role: "user", content }],
    max_tokens: 500,
    ...more,
  }),
};

/** Asks the provider as its plan says. */
function ask(fetch, api, plan, more, init) {
  const body = apis[api](JSON.stringify(plan), more);
  const sent = {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json" },
  };
  return fetch(provider.url + api, { ...sent, ...init });
}

const modelOf = (api) => apis[api]("").model;

/** The counts of one call with this use. */
const countsFor = (model, { input, cached = 0, output }) => ({
  requests: 1,
  tokens: input + output,
  inputTokens: input,
  outputTokens: output,
  usd: priceOf(model, { input, cached, output }),
  running: 0,
});

const nothing = { requests: 0, tokens: 0, inputTokens: 0, outputTokens: 0, usd: 0, running: 0 };

for (const api of Object.keys(apis))
  describe(api, () => {
    test("as JSON: the response is the provider's, and its usage is charged", async () => {
      const { limiter, options } = setting();
      const plan = { output: 37, cached: 3 };
      const response = await ask(budgetFetch(options), api, plan);
      assert.equal(response.status, 200);
      assert.equal(response.url, provider.url + api);
      assert.equal(response.headers.get("Content-Type"), "application/json");
      const direct = await (await ask(fetch, api, plan)).json();
      assert.deepEqual(await response.json(), direct);
      const [{ input, output }] = provider.ledger;
      assert.equal(output, 37);
      assert.deepEqual(countsOf(limiter), countsFor(modelOf(api), { input, cached: 3, output }));
    });

    test("as a stream: the bytes are the provider's, and its usage is charged", async () => {
      const { limiter, options, time } = setting();
      const plan = { output: 41, perEvent: 3, cached: 2 };
      const response = await ask(budgetFetch(options), api, plan, { stream: true });
      assert.equal(response.headers.get("Content-Type"), "text/event-stream; charset=utf-8");
      const text = await response.text();
      assert.equal(text, await (await ask(fetch, api, plan, { stream: true })).text());
      const [{ input }] = provider.ledger;
      assert.deepEqual(countsOf(limiter), countsFor(modelOf(api), { input, cached: 2, output: 41 }));
      assert.equal(time.timers, 0);
    });

    test("the estimate counts as used while a stream runs, and its reservation is extended", async () => {
      const { limiter, options, time } = setting();
      const response = await ask(budgetFetch(options), api, { output: 9, stall: 4 }, { stream: true });
      const text = response.text();
      const running = countsOf(limiter);
      assert.equal(running.running, 1);
      assert.equal(running.outputTokens, 500);
      await until(() => provider.ledger[0].output >= 4, "the stall");
      await time.move(600_000);
      assert.deepEqual(countsOf(limiter), running);
      provider.resume();
      await text;
      provider.stallAgain();
      const [{ input }] = provider.ledger;
      assert.deepEqual(countsOf(limiter), countsFor(modelOf(api), { input, output: 9 }));
    });

    for (const [name, plan] of [
      ["is cut", { output: 90, cut: 60 }],
      ["is cut without usage", { output: 90, cut: 60, usage: "none" }],
      ["ends in an error", { output: 90, error: 60 }],
      ["says no usage", { output: 60, usage: "none" }],
    ])
      test(`a stream that ${name} costs what it delivered, at least`, async () => {
        const { limiter, options } = setting();
        const response = await ask(budgetFetch(options), api, plan, { stream: true });
        let delivered = "";
        await (async () => {
          for await (const chunk of response.body) delivered += Buffer.from(chunk).toString();
        })().catch(() => {});
        const words = delivered.match(/word/g)?.length ?? 0;
        const counts = countsOf(limiter);
        const [{ input }] = provider.ledger;
        assert.equal(words, 60);
        assert.ok(counts.outputTokens >= words, `${counts.outputTokens} of ${words}`);
        assert.ok(counts.inputTokens >= input);
        assert.ok(counts.outputTokens < 2 * words);
        assert.ok(counts.usd >= priceOf(modelOf(api), { input, output: words }));
        assert.deepEqual([counts.requests, counts.running], [1, 0]);
      });

    test("a stream that is aborted costs what it delivered, also if nobody reads it then", async () => {
      for (const isRead of [true, false]) {
        const { limiter, options } = setting();
        const controller = new AbortController();
        const { signal } = controller;
        const response = await ask(
          budgetFetch(options),
          api,
          { output: 90, stall: 50 },
          { stream: true },
          { signal },
        );
        const reader = response.body.getReader();
        let delivered = "";
        while ((delivered.match(/word/g)?.length ?? 0) < 50)
          delivered += Buffer.from((await reader.read()).value).toString();
        const last = isRead ? reader.read() : undefined;
        controller.abort();
        if (isRead) await assert.rejects(last, { name: "AbortError" });
        const counts = countsOf(limiter);
        assert.ok(counts.outputTokens >= 50 && counts.outputTokens < 100, `${counts.outputTokens}`);
        assert.equal(counts.running, 0);
      }
    });

    test("a reader that stops costs what was delivered", async () => {
      const { limiter, options } = setting();
      const response = await ask(budgetFetch(options), api, { output: 90, stall: 30 }, { stream: true });
      for await (const _ of response.body) break;
      const { outputTokens, inputTokens, requests, running } = countsOf(limiter);
      assert.ok(inputTokens > 0 && outputTokens < 90);
      assert.deepEqual([requests, running], [1, 0]);
    });

    test("a refused call costs nothing, and a repeated one costs once", async () => {
      const { limiter, options } = setting();
      const fetch = budgetFetch(options);
      const plan = { output: 8, fail: 429, times: 2, id: api };
      for (const status of [429, 429]) {
        const response = await ask(fetch, api, plan, { stream: true });
        assert.equal(response.status, status);
        assert.equal((await response.json()).error.message, "not now");
        assert.deepEqual(countsOf(limiter), nothing);
      }
      await (await ask(fetch, api, plan, { stream: true })).text();
      const [{ input }] = provider.ledger;
      assert.deepEqual(countsOf(limiter), countsFor(modelOf(api), { input, output: 8 }));
    });

    test("a body without usage, or with one that is no count, costs its text", async () => {
      for (const usage of [
        "none",
        {},
        { input_tokens: -4, output_tokens: -4, prompt_tokens: "9", completion_tokens: 1e300 },
        { input_tokens: 0, prompt_tokens: 0, output_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      ])
        for (const stream of [false, true]) {
          const { limiter, options } = setting();
          await (await ask(budgetFetch(options), api, { output: 50, usage }, { stream })).text();
          const { outputTokens, inputTokens } = countsOf(limiter);
          assert.ok(
            outputTokens >= 50 && outputTokens < 100,
            `${outputTokens} with ${JSON.stringify(usage)}`,
          );
          assert.ok(inputTokens >= provider.ledger.at(-1).input);
        }
    });
  });

describe("a stream of chat completions", () => {
  test("is asked for its usage, and the event that says it is not passed on", async () => {
    const { limiter, options } = setting();
    const response = await ask(
      budgetFetch(options),
      "/chat/completions",
      { output: 5 },
      { stream: true, seed: 7 },
    );
    const text = await response.text();
    const sent = JSON.parse(provider.requests[0].text);
    assert.deepEqual([sent.stream_options, sent.seed], [{ include_usage: true }, 7]);
    assert.equal(text.includes('"choices":[]'), false);
    assert.equal(countsOf(limiter).outputTokens, 5);
  });

  test("keeps that event if the request wants it, and stays as it is if the option says so", async () => {
    const { limiter, options } = setting();
    const wanted = { stream: true, stream_options: { include_usage: true } };
    const asked = await (await ask(budgetFetch(options), "/chat/completions", { output: 5 }, wanted)).text();
    assert.match(asked, /"choices":\[\],"usage":\{"prompt_tokens"/);
    const fetch = budgetFetch({ ...options, key: "other", includeUsage: false });
    await (await ask(fetch, "/chat/completions", { output: 60 }, { stream: true })).text();
    assert.equal(JSON.parse(provider.requests[1].text).stream_options, undefined);
    const { outputTokens } = countsOf(limiter, "other");
    assert.ok(outputTokens >= 60 && outputTokens < 120);
  });

  test("is read also if its chunks cut events and characters anywhere", async () => {
    const content = "naïve – 漢字 🙂";
    const events = [
      { choices: [{ delta: { content } }] },
      { choices: [], usage: { prompt_tokens: 7, completion_tokens: 11 } },
    ].map((event) => `data: ${JSON.stringify(event)}`);
    for (const line of ["\n", "\r\n", "\r"]) {
      const bytes = Buffer.from([...events, "data: [DONE]", ""].join(line + line));
      for (const size of [1, 2, 3, 7, 1_000]) {
        const { limiter, options } = setting();
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
          bytes.subarray(at * size, (at + 1) * size),
        );
        const fetch = async () =>
          new Response(ReadableStream.from(chunks), { headers: { "Content-Type": "text/event-stream" } });
        const text = await (
          await ask(budgetFetch({ ...options, fetch }), "/chat/completions", {}, { stream: true })
        ).text();
        assert.equal(text, [events[0], "data: [DONE]", ""].join(line + line));
        assert.equal(countsOf(limiter).tokens, 18);
      }
    }
  });

  test("is read from its byte order mark to the first half of its last line break", async () => {
    const { limiter, options } = setting();
    const event = `data: ${JSON.stringify({ type: "message_delta", usage: { input_tokens: 7, output_tokens: 11 } })}`;
    for (const text of [`\uFEFF${event}\n\n`, `${event}\r\r`, `${event}\r\n\r`]) {
      const source = new ReadableStream({ start: (chunks) => chunks.enqueue(Buffer.from(text)) });
      const fetch = async () => new Response(source, { headers: { "Content-Type": "text/event-stream" } });
      const response = await ask(budgetFetch({ ...options, fetch }), "/messages", {}, { stream: true });
      const reader = response.body.getReader();
      assert.equal(Buffer.from((await reader.read()).value).toString(), text);
      await reader.cancel();
    }
    assert.equal(countsOf(limiter).tokens, 3 * 18);
  });

  test("passes nothing on after an abort, even if its source does not obey", async () => {
    const event = (content) =>
      Buffer.from(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);
    // The abort comes before a chunk is asked for, or while one is on its way.
    for (const isOnItsWay of [false, true]) {
      const { limiter, options } = setting();
      const controller = new AbortController();
      let isCancelled = false;
      let pulls = 0;
      const source = new ReadableStream(
        {
          pull(chunks) {
            pulls += 1;
            chunks.enqueue(event("word"));
            if (isOnItsWay && pulls === 2) controller.abort(new Error("enough"));
          },
          cancel: () => {
            isCancelled = true;
          },
        },
        { highWaterMark: 0 },
      );
      const fetch = async () => new Response(source, { headers: { "Content-Type": "text/event-stream" } });
      const { signal } = controller;
      const response = await ask(
        budgetFetch({ ...options, countTokens: (text) => text.length, fetch }),
        "/messages",
        {},
        { stream: true },
        { signal },
      );
      const reader = response.body.getReader();
      await reader.read();
      if (!isOnItsWay) controller.abort(new Error("enough"));
      await assert.rejects(reader.read(), { message: "enough" });
      assert.equal(countsOf(limiter).outputTokens, 4);
      assert.equal(countsOf(limiter).running, 0);
      assert.ok(isCancelled);
    }
  });

  test("counts reasoning that is only in the total", async () => {
    const { limiter, options } = setting();
    const usage = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 30 };
    await (await ask(budgetFetch(options), "/chat/completions", { output: 4, usage })).text();
    const { inputTokens, outputTokens, tokens } = countsOf(limiter);
    assert.deepEqual([inputTokens, outputTokens, tokens], [10, 20, 30]);
  });

  test("a count that was said once is not taken back", async () => {
    const { limiter, options } = setting();
    const events = [
      {
        type: "message_start",
        message: { usage: { input_tokens: 20, cache_read_input_tokens: 80, output_tokens: 3 } },
      },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: { input_tokens: 20, output_tokens: 2 },
      },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    const fetch = async () =>
      new Response(events.join(""), { headers: { "Content-Type": "text/event-stream" } });
    await (await ask(budgetFetch({ ...options, fetch }), "/messages", {}, { stream: true })).text();
    const { inputTokens, outputTokens, usd } = countsOf(limiter);
    assert.deepEqual([inputTokens, outputTokens, usd], [100, 3, 129]);
  });

  test("an event without an end is passed on unread, and costs its length", async () => {
    const { limiter, options } = setting();
    // Each chunk ends within a character.
    const sent = Buffer.from(`data: ${"wordsé".repeat(2_900_000)}`);
    const starts = [0, ...Array.from({ length: 29 }, (_, at) => 12 + at * 700_000)];
    const source = ReadableStream.from(starts.map((start, at) => sent.subarray(start, starts[at + 1])));
    const fetch = async () => new Response(source, { headers: { "Content-Type": "text/event-stream" } });
    const response = await ask(budgetFetch({ ...options, fetch }), "/chat/completions", {}, { stream: true });
    const reader = response.body.getReader();
    const chunks = [];
    for (let read = await reader.read(); !read.done; read = await reader.read()) chunks.push(read.value);
    assert.ok(Buffer.concat(chunks).equals(sent));
    // Not all at its end.
    assert.ok(chunks.length > 1);
    assert.ok(countsOf(limiter).outputTokens >= 5_000_000);
  });

  test("text that no event has is charged too", async () => {
    const { limiter, options } = setting();
    const fetch = async () =>
      new Response(`data: ${textOf(40)}\n\n`, { headers: { "Content-Type": "text/event-stream" } });
    await (await ask(budgetFetch({ ...options, fetch }), "/chat/completions", {}, { stream: true })).text();
    assert.ok(countsOf(limiter).outputTokens >= 40);
  });
});

describe("a request", () => {
  test("that is no call of a model passes without a charge", async () => {
    const { limiter, options } = setting();
    const fetch = budgetFetch(options);
    assert.equal((await fetch(`${provider.url}/models`)).status, 200);
    assert.equal((await fetch(`${provider.url}/files/file_1`, { method: "DELETE" })).status, 200);
    const form = new FormData();
    form.set("file", new Blob(["x"]));
    assert.equal((await fetch(`${provider.url}/files`, { method: "POST", body: form })).status, 200);
    assert.equal((await fetch(`${provider.url}/files`, { method: "POST", body: "{" })).status, 200);
    assert.deepEqual(countsOf(limiter), nothing);
    assert.match(provider.requests[2].headers["content-type"], /^multipart\/form-data/);
  });

  test("may be a Request, its body bytes, its address a URL", async () => {
    const body = JSON.stringify(apis["/chat/completions"](JSON.stringify({ output: 6 }), { stream: true }));
    const url = `${provider.url}/chat/completions`;
    const headers = { "Content-Type": "application/json", "X-Trace": "7" };
    for (const args of [
      [new Request(url, { method: "POST", body, headers })],
      [new URL(url), { method: "post", body: Buffer.from(body), headers }],
      [url, { method: "POST", body, headers: { ...headers, "Content-Length": String(body.length) } }],
      [
        new Request(url, { headers: { "X-Trace": "0" } }),
        { method: "POST", body, headers: new Headers(headers) },
      ],
    ]) {
      const { limiter, options } = setting();
      await (await budgetFetch(options)(...args)).text();
      assert.equal(countsOf(limiter).outputTokens, 6);
      assert.equal(provider.requests.at(-1).headers["x-trace"], "7");
    }
  });

  test("for embeddings costs its input, reserves no output, and needs no max_tokens", async () => {
    const { limiter, options } = setting();
    let reserved;
    const fetch = budgetFetch({
      ...options,
      key(call) {
        reserved = call.outputTokens;
        return "user:42";
      },
    });
    const body = JSON.stringify({ model: "embedder", input: ["a word or two", "and more"] });
    await (await fetch(`${provider.url}/embeddings`, { method: "POST", body })).json();
    assert.equal(reserved, 0);
    const input = tokensOf("a word or twoand more");
    assert.deepEqual(countsOf(limiter), {
      ...nothing,
      requests: 1,
      tokens: input,
      inputTokens: input,
      usd: 1,
    });
  });

  test("for embeddings may have tokens by their numbers", async () => {
    const inputs = [];
    const { options } = setting();
    const key = ({ inputTokens }) => String(inputs.push(inputTokens));
    const fetch = budgetFetch({ ...options, key, fetch: async () => Response.json({}) });
    for (const input of [
      [15496, 995],
      [[15496, 995], [7]],
    ])
      await fetch("https://x/embeddings", {
        method: "POST",
        body: JSON.stringify({ model: "embedder", input }),
      });
    assert.deepEqual(inputs, [3, 3]);
  });

  test("that runs no model is free, whatever it says", async () => {
    const { limiter, options } = setting();
    for (const path of ["messages/count_tokens", "responses/input_tokens", "moderations?x=1", "tokenize/"]) {
      const body = JSON.stringify({ model: "none", input: "words", messages: [] });
      const fetch = budgetFetch({ ...options, fetch: async () => Response.json({ input_tokens: 5 }) });
      assert.deepEqual(await (await fetch(`https://x/v1/${path}`, { method: "POST", body })).json(), {
        input_tokens: 5,
      });
    }
    assert.deepEqual(countsOf(limiter), nothing);
  });

  test("with tools costs their names and fields too, before it is known", async () => {
    const inputs = [];
    const { options } = setting();
    const key = ({ inputTokens }) => String(inputs.push(inputTokens));
    const fetch = budgetFetch({ ...options, key, fetch: async () => Response.json({}) });
    const tools = [
      {
        type: "function",
        function: { name: "a", parameters: { properties: { temperature: { type: "number" } } } },
      },
    ];
    for (const more of [{}, { tools }]) await ask(fetch, "/messages", {}, more);
    assert.ok(inputs[1] - inputs[0] >= JSON.stringify(tools).length / 3, `${inputs}`);
  });

  test("of Azure takes its model from the address", async () => {
    const { limiter, options } = setting();
    const { model: _, ...body } = apis["/chat/completions"](JSON.stringify({ output: 3 }));
    const url = `${provider.url}/deployments/gpt-5/chat/completions?api-version=1`;
    await (await budgetFetch(options)(url, { method: "POST", body: JSON.stringify(body) })).json();
    assert.equal(countsOf(limiter).outputTokens, 3);
  });

  test("that gets no response costs nothing", async () => {
    const { limiter, options } = setting();
    const down = budgetFetch({ ...options, fetch: () => Promise.reject(new TypeError("fetch failed")) });
    await assert.rejects(ask(down, "/messages", {}), TypeError);
    assert.deepEqual(countsOf(limiter), nothing);
  });

  test("that is refused in any form costs nothing", async () => {
    const { limiter, options } = setting();
    for (const [status, type] of [
      [500, "text/html"],
      [429, "text/event-stream"],
      [529, "application/json"],
    ]) {
      const fetch = async () => new Response("busy", { status, headers: { "Content-Type": type } });
      const response = await ask(budgetFetch({ ...options, fetch }), "/messages", {});
      assert.deepEqual([response.status, await response.text()], [status, "busy"]);
      assert.deepEqual(countsOf(limiter), nothing);
    }
  });

  test("that throttledFetch sends again is charged once, and keeps its reservation while it waits", async () => {
    const { limiter, options, time } = setting();
    const { clock, timer } = time;
    const statuses = [429, 429, 200];
    const sent = [];
    const send = async (request) => {
      sent.push(await request.text());
      const status = statuses[sent.length - 1];
      const headers = status === 200 ? {} : { "Retry-After": "600" };
      return Response.json({ usage: { prompt_tokens: 9, completion_tokens: 4 } }, { status, headers });
    };
    const bucket = { algorithm: "token_bucket", capacity: 10, refillRate: 10 };
    const polite = throttledFetch(bucket, { fetch: send, clock, timer, random: () => 0 });
    const asked = ask(budgetFetch({ ...options, fetch: polite }), "/chat/completions", {});
    for (const count of [1, 2]) {
      await until(() => sent.length === count, "the request");
      assert.equal(limiter.get("user:42", "running"), 1);
      // The response is read before the throttle waits.
      await until(() => time.timers > 1, "the wait");
      await time.move(600_000);
    }
    assert.equal((await asked).status, 200);
    assert.deepEqual(countsOf(limiter), countsFor("gpt-5", { input: 9, output: 4 }));
    assert.equal(new Set(sent).size, 1);
  });

  test("for several choices reserves the output of all", async () => {
    const { options } = setting();
    const outputs = [];
    const key = ({ outputTokens }) => String(outputs.push(outputTokens));
    const fetch = budgetFetch({ ...options, key, fetch: async () => Response.json({}) });
    for (const more of [{ n: 3 }, { n: 0 }, { n: "9" }, { max_tokens: "9" }, { max_completion_tokens: 7 }])
      await ask(fetch, "/chat/completions", {}, more);
    assert.deepEqual(outputs, [1_500, 500, 500, 4_096, 7]);
  });

  test("whose usage has more cached tokens than tokens costs what there is", async () => {
    const { limiter, options } = setting();
    const usage = { prompt_tokens: 80, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 500 } };
    const fetch = async () => Response.json({ usage });
    await ask(budgetFetch({ ...options, fetch }), "/chat/completions", {});
    assert.equal(countsOf(limiter).usd, priceOf("gpt-5", { input: 80, cached: 80, output: 1 }));
  });

  test("whose text is not ASCII costs no less than its characters", async () => {
    for (const text of ["漢字かな交じり文", "Привет, мир", "🙂🙃🙂🙃", "naïve café", "عربى"]) {
      const { limiter, options } = setting();
      const content = text.repeat(20);
      const fetch = async () => Response.json({ choices: [{ message: { content } }] });
      await ask(budgetFetch({ ...options, fetch }), "/chat/completions", {});
      const { outputTokens } = countsOf(limiter);
      assert.ok(outputTokens >= tokensOf(content), `${outputTokens} of ${tokensOf(content)}`);
    }
  });

  test("whose response is an error with status 200 costs nothing", async () => {
    const { limiter, options } = setting();
    const fetch = async () => Response.json({ error: { message: "upstream is away" } });
    await ask(budgetFetch({ ...options, fetch }), "/chat/completions", {});
    assert.deepEqual(countsOf(limiter), nothing);
  });

  test("for a response in the background is charged as reserved", async () => {
    const { limiter, options } = setting();
    const fetch = async () =>
      Response.json({ id: "resp_1", status: "queued", output: [], usage: null, error: null });
    await ask(budgetFetch({ ...options, fetch }), "/responses", {}, { background: true });
    assert.equal(countsOf(limiter).outputTokens, 500);
  });

  test("is charged by its length if the tokenizer fails in the end", async () => {
    const { limiter, options } = setting();
    const countTokens = (text) => {
      if (text.startsWith("word")) throw new Error("no such model");
      return text.length;
    };
    for (const count of [countTokens, () => Number.NaN, () => -1]) {
      const { limiter, options } = setting();
      const fetch = budgetFetch({ ...options, countTokens: count });
      await (await ask(fetch, "/messages", { output: 30, usage: "none" }, { stream: true })).text();
      assert.equal(countsOf(limiter).outputTokens, 40);
    }
    const failing = budgetFetch({ ...options, countTokens: () => assert.fail("before the call") });
    await assert.rejects(ask(failing, "/messages", {}), /before the call/);
    assert.deepEqual(countsOf(limiter), nothing);
  });

  test("whose response says no tokens, such as sound, is charged as reserved", async () => {
    const { limiter, options } = setting();
    const fetch = async () => new Response("sound", { headers: { "Content-Type": "audio/mpeg" } });
    const body = JSON.stringify({ model: "gpt-5", input: "say it", max_tokens: 100 });
    assert.equal(
      await (
        await budgetFetch({ ...options, fetch })("https://x/audio/speech", { method: "POST", body })
      ).text(),
      "sound",
    );
    assert.equal(countsOf(limiter).outputTokens, 100);
  });
});

describe("a denied call", () => {
  const tight = [{ name: "outputTokens", algorithm: "token_bucket", capacity: 600, refillRate: 1 }];
  const budgetOf = (more) => {
    const { limiter, options } = setting({ policies: tight });
    const { prices: _, ...rest } = options;
    return { limiter, fetch: budgetFetch({ ...rest, ...more }) };
  };

  test("is a 429 that SDKs understand, and nothing is sent", async () => {
    const { limiter, fetch } = budgetOf();
    await (await ask(fetch, "/messages", { output: 300 })).json();
    const response = await ask(fetch, "/messages", { output: 300 });
    assert.equal(response.status, 429);
    const { headers } = response;
    assert.deepEqual(
      ["Retry-After", "retry-after-ms", "x-should-retry"].map((name) => headers.get(name)),
      ["200", "200000", "false"],
    );
    assert.deepEqual(await response.json(), {
      type: "error",
      error: {
        type: "rate_limit_error",
        code: "budget_denied",
        message: "the budget denies the call by outputTokens: try again in 3 minutes 20 seconds",
        policies: ["outputTokens"],
        retryAfter: 200_000,
        reserved: { outputTokens: 500 },
      },
    });
    assert.equal(provider.requests.length, 1);
    assert.equal(limiter.get("user:42"), 300);
  });

  test("may be an error, with the decision", async () => {
    const { fetch } = budgetOf({ onDenied: "throw" });
    await (await ask(fetch, "/messages", { output: 300 })).json();
    await assert.rejects(ask(fetch, "/messages", { output: 300 }), (error) => {
      assert.ok(error instanceof BudgetDenied);
      assert.deepEqual(
        [error.retryAfter, error.decision.violated, error.status],
        [200_000, ["outputTokens"], 429],
      );
      return true;
    });
  });

  test("may get another response", async () => {
    const { fetch } = budgetOf({ onDenied: ({ key }) => new Response(`no ${key}`, { status: 402 }) });
    await (await ask(fetch, "/messages", { output: 300 })).json();
    const response = await ask(fetch, "/messages", { output: 300 });
    assert.deepEqual([response.status, await response.text()], [402, "no user:42"]);
    const { fetch: silent } = budgetOf({ onDenied: () => undefined });
    await (await ask(silent, "/messages", { output: 300 })).json();
    assert.equal((await ask(silent, "/messages", { output: 300 })).status, 429);
  });

  test("that never fits says so", async () => {
    const { fetch } = budgetOf();
    const response = await ask(fetch, "/messages", {}, { max_tokens: 601 });
    assert.equal(response.headers.get("Retry-After"), null);
    const { error } = await response.json();
    assert.equal(
      error.message,
      "the budget never allows the call by outputTokens: it may use 601 of 600 output tokens; set its most output tokens, or the option estimate",
    );
    assert.equal(error.retryAfter, null);
  });
});
