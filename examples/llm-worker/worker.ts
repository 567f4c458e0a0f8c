import { ipKey } from "tollgate";
import { budgetFetch } from "tollgate/ai";
import { RateLimiterObject, type TollgateEnv } from "tollgate/cloudflare";

export { RateLimiterObject };

interface Env extends TollgateEnv {
  readonly MODEL_URL: string;
  readonly MODEL_KEY: string;
}

const policy = [
  { name: "tokens", algorithm: "token_bucket", capacity: 1_000, refillRate: 1_000, per: "1h" },
  { name: "running", algorithm: "concurrency", limit: 1 },
] as const;

export default {
  async fetch(request, env, context) {
    if (request.method !== "POST") return new Response("POST a question\n", { status: 405 });
    const fetch = budgetFetch({
      limiter: env.LIMITERS,
      policy,
      key: `llm:${ipKey(request.headers.get("CF-Connecting-IP") ?? "0.0.0.0")}`,
      waitUntil: (promise) => context.waitUntil(promise),
    });
    // The visitor's disconnection ends the call.
    return fetch(`${env.MODEL_URL}/chat/completions`, {
      method: "POST",
      signal: request.signal,
      headers: { Authorization: `Bearer ${env.MODEL_KEY}`, "Content-Type": "application/json" },
      body: JSON.stringify({
        model: "gpt-5",
        messages: [{ role: "user", content: await request.text() }],
        max_tokens: 300,
        stream: true,
      }),
    });
  },
} satisfies ExportedHandler<Env>;
