// Calls of a provider that is a function, and what they are asked with.

export const nothing = { requests: 0, tokens: 0, inputTokens: 0, outputTokens: 0, usd: 0, running: 0 };
export const of = { model: "gpt-5", inputTokens: 1_000, outputTokens: 500 };
export const chat = { model: "gpt-5", messages: [{ role: "user", content: "hello" }], max_tokens: 500 };
export const api = "https://api.example.com/v1";
export const usage = { prompt_tokens: 9, completion_tokens: 4 };

/** Sends a body as JSON. */
export const post = (fetch, path, body, init) =>
  fetch(`${api}/${path}`, { method: "POST", body: JSON.stringify(body), ...init });

/** A `fetch` that remembers what was sent, and answers with a body. */
export function provider(answer = { usage }) {
  const sent = [];
  const fetch = async (input, init) => {
    sent.push([input, init]);
    const body = typeof answer === "function" ? answer(sent.length, input, init) : answer;
    return body instanceof Response ? body : Response.json(body);
  };
  // Only `fetch` is spread into options.
  return Object.defineProperty({ fetch }, "sent", { value: sent });
}
