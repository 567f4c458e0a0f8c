// Models of the AI SDK over the provider, as a package for it would be, of each version of the specification.

const usageOf = (usage) => ({
  inputTokens: {
    total: usage?.prompt_tokens,
    noCache: undefined,
    cacheRead: usage?.prompt_tokens_details?.cached_tokens,
    cacheWrite: undefined,
  },
  outputTokens: { total: usage?.completion_tokens, text: undefined, reasoning: undefined },
});

const end = { unified: "stop", raw: "stop" };

/** The prompt of the last message of a user. */
const promptOf = (prompt) =>
  prompt
    .findLast(({ role }) => role === "user")
    .content.map(({ text = "" }) => text)
    .join("");

/** Returns a language model; `APICallError` is that of the SDK, whose retries depend on it. */
export function languageModel(url, specificationVersion, APICallError) {
  const ask = async ({ prompt, maxOutputTokens, abortSignal, headers }, more) => {
    const body = {
      model: "gpt-5",
      messages: [{ role: "user", content: promptOf(prompt) }],
      max_tokens: maxOutputTokens,
      ...more,
    };
    const sent = { method: "POST", body: JSON.stringify(body), headers, signal: abortSignal };
    const response = await fetch(`${url}/chat/completions`, sent);
    if (response.ok) return response;
    throw new APICallError({
      message: "not now",
      url,
      requestBodyValues: body,
      statusCode: response.status,
      responseHeaders: Object.fromEntries(response.headers),
      responseBody: await response.text(),
    });
  };
  return {
    specificationVersion,
    provider: "fake",
    modelId: "gpt-5",
    supportedUrls: {},
    async doGenerate(params) {
      const { choices, usage } = await (await ask(params, {})).json();
      const { content } = choices[0].message;
      return {
        content: partsOf(content, params),
        finishReason: end,
        usage: usageOf(usage),
        warnings: [],
      };
    },
    async doStream(params) {
      const response = await ask(params, { stream: true, stream_options: { include_usage: true } });
      return { stream: ReadableStream.from(streamParts(response.body, params)) };
    },
  };
}

/** A model with tools calls one in its first turn. */
function partsOf(content, { tools, prompt }) {
  if (tools === undefined || prompt.some(({ role }) => role === "tool"))
    return [{ type: "text", text: content }];
  return [{ type: "tool-call", toolCallId: "call_1", toolName: tools[0].name, input: '{"city":"Oslo"}' }];
}

async function* streamParts(body, params) {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "1" };
  let [rest, usage] = ["", undefined];
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^(event: .*\n)?(data: )?/, "");
      if (data === "[DONE]" || data.startsWith(":")) continue;
      const value = JSON.parse(data);
      if (value.error !== undefined) yield { type: "error", error: value.error };
      usage = value.usage ?? usage;
      const delta = value.choices?.[0]?.delta.content;
      if (delta !== undefined) yield { type: "text-delta", id: "1", delta };
    }
  }
  yield { type: "text-end", id: "1" };
  for (const part of partsOf("", params)) if (part.type === "tool-call") yield part;
  yield { type: "finish", finishReason: end, usage: usageOf(usage) };
}

/** Returns an embedding model. */
export const embeddingModel = (url, specificationVersion) => ({
  specificationVersion,
  provider: "fake",
  modelId: "embedder",
  maxEmbeddingsPerCall: 10,
  supportsParallelCalls: true,
  async doEmbed({ values }) {
    const body = JSON.stringify({ model: "embedder", input: values });
    const response = await fetch(`${url}/embeddings`, { method: "POST", body });
    const { data, usage } = await response.json();
    return {
      embeddings: values.map(() => data[0].embedding),
      usage: { tokens: usage.prompt_tokens },
      warnings: [],
    };
  },
});
