const answer = ["Hello", ", ", "one, ", "two, ", "three."];
const usage = {
  inputTokens: { total: 40, noCache: 30, cacheRead: 10, cacheWrite: 0 },
  outputTokens: { total: 25, text: 25, reasoning: 0 },
};
const finishReason = { unified: "stop", raw: "stop" };

/** Stands in for a model of a provider, so that the example needs no account. */
export const fakeModel = (modelId) => ({
  specificationVersion: "v4",
  provider: "fake",
  modelId,
  supportedUrls: {},
  doGenerate: async () => ({
    content: [{ type: "text", text: answer.join("") }],
    finishReason,
    usage,
    warnings: [],
  }),
  doStream: async () => ({
    stream: ReadableStream.from([
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "1" },
      ...answer.map((delta) => ({ type: "text-delta", id: "1", delta })),
      { type: "text-end", id: "1" },
      { type: "finish", finishReason, usage },
    ]),
  }),
});
