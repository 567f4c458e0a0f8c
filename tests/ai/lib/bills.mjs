// What a provider says and bills for each endpoint of the table: the price is computed here by itself, in integers.

/** The prices of the model "m". */
export const prices = {
  m: {
    input: "1.25",
    cachedInput: "0.125",
    cacheWrite: "1.5625",
    longCacheWrite: "2.5",
    audioInput: "40",
    imageInput: "8",
    output: "10",
    audioOutput: "80",
    imageOutput: "32",
    tiers: { batch: "0.5" },
    uses: { web_search_requests: "0.01" },
  },
};

/** The bill of calls in millionths of a dollar: each is rounded up. In hundred-thousandths of a millionth, of which a batch costs half. */
export function billOf(
  { input, cached, written, long, audioIn, imageIn, output, audioOut, imageOut, searches },
  isBatch,
) {
  const plainIn = input - cached - written - audioIn - imageIn;
  const tokens =
    plainIn * 125_000 +
    cached * 12_500 +
    (written - long) * 156_250 +
    long * 250_000 +
    audioIn * 4_000_000 +
    imageIn * 800_000 +
    (output - audioOut - imageOut) * 1_000_000 +
    audioOut * 8_000_000 +
    imageOut * 3_200_000;
  return Math.ceil((isBatch ? tokens / 2 : tokens) / 100_000) + searches * 10_000;
}

const ofOpenAI = ({ input, cached, written, audioIn, imageIn, output, audioOut }) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: {
    cached_tokens: cached,
    cache_write_tokens: written,
    audio_tokens: audioIn,
    image_tokens: imageIn,
  },
  completion_tokens_details: { audio_tokens: audioOut, reasoning_tokens: 0 },
});

const ofResponses = ({ input, cached, written, long, output }) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  input_tokens_details: {
    cached_tokens: cached,
    cache_write_tokens: written,
    cache_write_tokens_details: { ttl_12h_tokens: long, ttl_30m_tokens: written - long },
  },
});

const ofAnthropic = ({ input, cached, written, long, output, searches }) => ({
  input_tokens: input - cached - written,
  cache_read_input_tokens: cached,
  cache_creation_input_tokens: written,
  cache_creation: { ephemeral_5m_input_tokens: written - long, ephemeral_1h_input_tokens: long },
  output_tokens: output,
  server_tool_use: { web_search_requests: searches, web_fetch_requests: 1 },
});

const ofGemini = ({ input, cached, audioIn, imageIn, output, audioOut, imageOut }) => {
  const thoughts = Math.floor((output - audioOut - imageOut) / 2);
  return {
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    promptTokensDetails: [
      { modality: "AUDIO", tokenCount: audioIn },
      { modality: "IMAGE", tokenCount: imageIn },
    ],
    candidatesTokenCount: output - thoughts,
    candidatesTokensDetails: [
      { modality: "IMAGE", tokenCount: imageOut },
      { modality: "AUDIO", tokenCount: audioOut },
    ],
    thoughtsTokenCount: thoughts,
    totalTokenCount: input + output,
  };
};

const messages = { messages: [{ role: "user", content: "hello" }], max_tokens: 9 };
const generate = {
  contents: [{ role: "user", parts: [{ text: "hello" }] }],
  generationConfig: { maxOutputTokens: 9 },
};
const half = (use) =>
  Object.fromEntries(Object.entries(use).map(([name, count]) => [name, Math.floor(count / 2)]));
const candidate = (more) => [{ content: { role: "model", parts: [{ text: "hello" }] }, ...more }];

const chat = {
  says: ["cached", "written", "audioIn", "imageIn", "output", "audioOut"],
  request: { model: "m", ...messages },
  body: (use) => ({
    choices: [{ message: { content: "hello" }, finish_reason: "stop" }],
    usage: ofOpenAI(use),
  }),
  events: (use) => [
    { choices: [{ delta: { content: "hello" }, finish_reason: null }] },
    { choices: [{ delta: {}, finish_reason: "stop" }] },
    { choices: [], usage: ofOpenAI(use) },
    "[DONE]",
  ],
};

const response = (use) => ({
  id: "resp_1",
  status: "completed",
  output: [{ type: "message", content: [{ type: "output_text", text: "hello" }] }],
  usage: ofResponses(use),
  tool_usage: { web_search: { num_requests: use.searches } },
});

const responses = {
  says: ["cached", "written", "long", "output", "searches"],
  request: { model: "m", input: "hello", max_output_tokens: 9 },
  body: response,
  events: (use) => [
    { type: "response.created", response: { id: "resp_1", status: "in_progress", usage: null } },
    { type: "response.output_text.delta", delta: "hello" },
    { type: "response.completed", response: response(use) },
  ],
};

const anthropic = {
  says: ["cached", "written", "long", "output", "searches"],
  request: { model: "m", ...messages },
  body: (use) => ({ type: "message", content: [{ type: "text", text: "hello" }], usage: ofAnthropic(use) }),
  events: (use) => [
    {
      type: "message_start",
      message: { usage: { ...ofAnthropic(use), output_tokens: 1, server_tool_use: null } },
    },
    { type: "content_block_delta", delta: { type: "text_delta", text: "hello" } },
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: use.output, server_tool_use: { web_search_requests: use.searches } },
    },
    { type: "message_stop" },
  ],
};

const gemini = {
  says: ["cached", "audioIn", "imageIn", "output", "audioOut", "imageOut"],
  request: generate,
  body: (use) => ({ candidates: candidate({ finishReason: "STOP" }), usageMetadata: ofGemini(use) }),
  events: (use) => [
    { candidates: candidate(), usageMetadata: { ...ofGemini(half(use)), cachedContentTokenCount: 0 } },
    { candidates: candidate({ finishReason: "STOP" }), usageMetadata: ofGemini(use) },
  ],
};

const embedded = { embedding: { values: [1, 0] } };
const ofImages = ({ input, imageIn, output }) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  input_tokens_details: { image_tokens: imageIn, text_tokens: input - imageIn },
});
const images = {
  says: ["imageIn", "output"],
  request: { model: "m", prompt: "a cat" },
  body: (use) => ({ data: [{ b64_json: "AAAA" }], usage: ofImages(use) }),
  events: (use) => [
    { type: "image_generation.partial_image", b64_json: "AAAA" },
    { type: "image_generation.completed", b64_json: "AAAA", usage: ofImages(use) },
  ],
};
const ofSound = ({ input, audioIn, output }) => ({
  type: "tokens",
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  input_token_details: { audio_tokens: audioIn, text_tokens: input - audioIn },
});
const transcription = {
  says: ["audioIn", "output"],
  form: { model: "m", file: new Blob(["sound"]) },
  body: (use) => ({ text: "hello", usage: ofSound(use) }),
  events: (use) => [
    { type: "transcript.text.delta", delta: "hello" },
    { type: "transcript.text.done", text: "hello", usage: ofSound(use) },
  ],
};

/** What is asked of each endpoint that bills by what it says, and what it answers. */
export const bills = {
  "chat/completions": chat,
  completions: {
    says: ["output"],
    request: { model: "m", prompt: "hello", max_tokens: 9 },
    body: (use) => ({ choices: [{ text: "hello", finish_reason: "stop" }], usage: ofOpenAI(use) }),
    events: (use) => [
      { choices: [{ text: "hello", finish_reason: "stop" }], usage: ofOpenAI(use) },
      "[DONE]",
    ],
  },
  responses,
  "responses/compact": { ...responses, events: undefined },
  messages: anthropic,
  ":generateContent": { ...gemini, events: undefined },
  // As events, or as a list.
  ":streamGenerateContent": { ...gemini, body: (use) => gemini.events(use) },
  ":rawPredict": { ...anthropic, request: messages, events: undefined },
  ":streamRawPredict": { ...anthropic, request: { ...messages, stream: true } },
  embeddings: {
    says: [],
    request: { model: "m", input: "hello" },
    body: ({ input }) => ({
      data: [{ embedding: [1, 0] }],
      usage: { prompt_tokens: input, total_tokens: input },
    }),
  },
  embed: {
    says: [],
    request: { model: "m", texts: ["hello"] },
    body: ({ input }) => ({ embeddings: [[1, 0]], meta: { billed_units: { input_tokens: input } } }),
  },
  rerank: {
    says: [],
    request: { model: "m", query: "hello", documents: ["a", "b"] },
    body: ({ input }) => ({ data: [{ index: 0, relevance_score: 0.5 }], usage: { total_tokens: input } }),
  },
  ":embedContent": {
    says: [],
    request: { content: { parts: [{ text: "hello" }] } },
    body: ({ input }) => ({
      ...embedded,
      usageMetadata: { promptTokenCount: input, totalTokenCount: input },
    }),
  },
  ":batchEmbedContents": {
    says: [],
    request: { requests: [{ content: { parts: [{ text: "hello" }] } }] },
    body: ({ input }) => ({ embeddings: [embedded], usageMetadata: { promptTokenCount: input } }),
  },
  "images/generations": images,
  "images/edits": { ...images, form: { model: "m", prompt: "a dog", image: new Blob(["image"]) } },
  "images/variations": { ...images, form: { model: "m", image: new Blob(["image"]) }, events: undefined },
  "audio/speech": {
    says: ["output"],
    request: { model: "m", input: "hello" },
    events: (use) => [
      { type: "speech.audio.delta", audio: "AAAA" },
      { type: "speech.audio.done", usage: ofImages(use) },
    ],
  },
  "audio/transcriptions": transcription,
  "audio/translations": { ...transcription, events: undefined },
  "messages/batches": {
    says: ["cached", "written", "long", "output", "searches"],
    isBatch: true,
    request: {
      requests: [1, 2, 3].map((id) => ({ custom_id: String(id), params: { model: "m", ...messages } })),
    },
    body: () => ({ id: "job_1", processing_status: "in_progress" }),
    fetched: (use) => [
      {
        path: "/results",
        // One of three is billed, and one failed; the bill is that of the sum.
        text: [
          { result: { type: "succeeded", message: { usage: ofAnthropic(use) } } },
          { result: { type: "errored", error: {} } },
          { result: { type: "canceled" } },
        ]
          .map((each) => `${JSON.stringify(each)}\n`)
          .join(""),
      },
    ],
  },
  batches: {
    says: ["cached", "written", "long", "output"],
    isBatch: true,
    request: { model: "m", input_file_id: "file_1" },
    estimate: { inputTokens: 5, outputTokens: 5 },
    body: () => ({ id: "job_1", status: "validating" }),
    fetched: (use) => [
      { path: "", text: JSON.stringify({ id: "job_1", status: "in_progress" }) },
      { path: "", text: JSON.stringify({ id: "job_1", status: "completed", usage: ofResponses(use) }) },
    ],
  },
};
