// A provider of language models on 127.0.0.1: it counts what it sends, and behaves as badly as a prompt tells it to.

import { once } from "node:events";
import { createServer } from "node:http";

/** The provider's tokenizer: four characters of ASCII, or one other character. */
export function tokensOf(text) {
  const others = [...text].filter((character) => character.charCodeAt(0) > 127).length;
  return Math.ceil((text.length - others) / 4) + others;
}

/** The text of so many tokens. */
export const textOf = (tokens) => "word".repeat(tokens);

/**
 * Starts a provider. A prompt is JSON: `output` tokens are streamed, `perEvent` of them in an event; after `stall`, `cut` or
 * `error` of them the stream stops, loses its connection or reports an error; `usage` is "none" or what to say instead of
 * the truth; `fail` is the status of the first `times` responses to the conversation `id`.
 */
export async function startProvider() {
  const provider = { url: "", ledger: [], requests: [], failed: new Map(), resume: () => {} };
  let resumed = new Promise((resolve) => {
    provider.resume = resolve;
  });
  provider.stallAgain = () => {
    resumed = new Promise((resolve) => {
      provider.resume = resolve;
    });
  };
  const server = createServer(async (request, response) => {
    // A reader that has gone is part of the tests.
    response.on("error", () => {});
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    provider.requests.push({ path: request.url, headers: request.headers, text });
    const path = request.url.replace(/\?.*/, "");
    const api = Object.keys(apis).find((name) => path.endsWith(name));
    if (request.method !== "POST" || api === undefined) return json(response, 200, { data: [] });
    const body = JSON.parse(text);
    const prompt = apis[api].prompt(body);
    const plan = planOf(prompt);
    if (plan.fail !== undefined) {
      const failed = (provider.failed.get(plan.id) ?? 0) + 1;
      provider.failed.set(plan.id, failed);
      if (failed <= (plan.times ?? 1))
        return json(
          response,
          plan.fail,
          { error: { message: "not now", type: "rate_limit_error" } },
          { "retry-after-ms": "1" },
        );
    }
    const call = { api, plan, input: tokensOf(prompt), output: 0, said: false, hasEnded: false };
    provider.ledger.push(call);
    if (api === "/embeddings") {
      call.said = true;
      const usage = { prompt_tokens: call.input, total_tokens: call.input };
      return json(response, 200, {
        object: "list",
        data: [{ index: 0, embedding: [1, 0] }],
        model: body.model,
        usage,
      });
    }
    const sent = body.stream
      ? stream(response, api, body, call, () => resumed)
      : whole(response, api, body, call);
    await sent;
    call.hasEnded = true;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  provider.url = `http://127.0.0.1:${server.address().port}/v1`;
  provider.stop = () => {
    provider.resume();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return provider;
}

function planOf(prompt) {
  const start = prompt.indexOf("{");
  return start < 0 ? { output: 5 } : JSON.parse(prompt.slice(start, prompt.lastIndexOf("}") + 1));
}

function json(response, status, body, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

const textIn = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

const lastOf = (messages) => textIn(messages.findLast(({ role }) => role === "user")?.content);

/** The usage that a plan has the provider say; `undefined` for none. */
function usageOf(call, said) {
  if (call.plan.usage === "none") return undefined;
  if (call.plan.usage !== undefined) return call.plan.usage;
  call.said = true;
  return said;
}

const apis = {
  "/chat/completions": {
    prompt: ({ messages }) => lastOf(messages),
    usage: (call) =>
      usageOf(call, {
        prompt_tokens: call.input,
        completion_tokens: call.output,
        total_tokens: call.input + call.output,
        prompt_tokens_details: { cached_tokens: call.plan.cached ?? 0 },
      }),
    body: (text, usage, { model }) => ({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model,
      choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
      usage,
    }),
    *events(texts, usageAtEnd, { model, stream_options }) {
      const chunk = (choices, more) => ({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model,
        choices,
        ...more,
      });
      for (const content of texts) yield chunk([{ index: 0, delta: { content }, finish_reason: null }]);
      yield chunk([{ index: 0, delta: {}, finish_reason: "stop" }]);
      if (stream_options?.include_usage) {
        const usage = usageAtEnd();
        if (usage !== undefined) yield chunk([], { usage });
      }
      yield "[DONE]";
    },
  },
  "/responses": {
    prompt: ({ input }) => (typeof input === "string" ? input : lastOf(input)),
    usage: (call) =>
      usageOf(call, {
        input_tokens: call.input,
        input_tokens_details: { cached_tokens: call.plan.cached ?? 0 },
        output_tokens: call.output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: call.input + call.output,
      }),
    body: (text, usage, { model }) => ({
      id: "resp_1",
      object: "response",
      created_at: 1,
      status: "completed",
      model,
      output: [
        {
          id: "msg_1",
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }],
        },
      ],
      usage,
    }),
    *events(texts, usageAtEnd, { model }) {
      const response = {
        id: "resp_1",
        object: "response",
        created_at: 1,
        status: "in_progress",
        model,
        output: [],
        usage: null,
      };
      yield { type: "response.created", sequence_number: 0, response };
      for (const delta of texts)
        yield {
          type: "response.output_text.delta",
          sequence_number: 1,
          item_id: "msg_1",
          output_index: 0,
          content_index: 0,
          delta,
        };
      yield {
        type: "response.completed",
        sequence_number: 2,
        response: { ...response, status: "completed", usage: usageAtEnd() },
      };
    },
  },
  "/messages": {
    prompt: ({ messages }) => lastOf(messages),
    // Anthropic says apart what the cache had.
    usage: (call) =>
      usageOf(call, {
        input_tokens: call.input - (call.plan.cached ?? 0),
        cache_read_input_tokens: call.plan.cached ?? 0,
        cache_creation_input_tokens: 0,
        output_tokens: call.output,
      }),
    body: (text, usage, { model }) => ({
      id: "msg_1",
      type: "message",
      role: "assistant",
      model,
      content: [{ type: "text", text }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage,
    }),
    *events(texts, usageAtEnd, { model }, call) {
      const { cached = 0, usage: lie } = call.plan;
      const usage =
        lie === "none"
          ? undefined
          : {
              input_tokens: call.input - cached,
              cache_read_input_tokens: cached,
              cache_creation_input_tokens: 0,
              output_tokens: 1,
            };
      const message = {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      };
      yield { type: "message_start", message };
      yield { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } };
      yield { type: "ping" };
      for (const text of texts)
        yield { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } };
      yield { type: "content_block_stop", index: 0 };
      const last = usageAtEnd();
      yield {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: last && { output_tokens: last.output_tokens },
      };
      yield { type: "message_stop" };
    },
  },
  "/embeddings": { prompt: ({ input }) => [input].flat().join("") },
};

async function whole(response, api, body, call) {
  call.output = call.plan.output;
  const { usage, body: bodyOf } = apis[api];
  json(response, 200, bodyOf(textOf(call.output), usage(call), body));
}

async function stream(response, api, body, call, resumed) {
  const { output, perEvent = 1, stall, cut, error } = call.plan;
  response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  /** The texts of the output. A token counts once it is on its way. */
  function* texts() {
    while (call.output < output) {
      const tokens = Math.min(perEvent, output - call.output);
      call.output += tokens;
      yield textOf(tokens);
    }
  }
  const isAt = (limit) => limit !== undefined && call.output >= limit;
  let hasStalled = false;
  for (const event of apis[api].events(texts(), () => apis[api].usage(call), body, call)) {
    const data = typeof event === "string" ? event : JSON.stringify(event);
    const name = event.type === undefined ? "" : `event: ${event.type}\n`;
    if (response.destroyed) return;
    if (!response.write(`${name}data: ${data}\n\n`))
      await Promise.race([once(response, "drain"), once(response, "close")]);
    if (isAt(stall) && !hasStalled) {
      hasStalled = true;
      await Promise.race([resumed(), once(response, "close")]);
    }
    if (isAt(cut)) {
      // What was written is sent first, and then nothing more.
      await new Promise((resolve) => response.write(": cut\n\n", resolve));
      response.destroy();
      return;
    }
    if (isAt(error)) {
      response.end(
        `event: error\ndata: ${JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })}\n\n`,
      );
      return;
    }
  }
  response.end();
}
