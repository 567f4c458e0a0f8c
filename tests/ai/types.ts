// A budget has the types of both majors of the AI SDK and of the SDKs that take a fetch, and takes every kind of limiter.

import Anthropic from "@anthropic-ai/sdk";
import {
  type EmbeddingModel,
  type EmbeddingModelMiddleware,
  type ImageModelMiddleware,
  type LanguageModelMiddleware,
  wrapLanguageModel,
  wrapProvider,
} from "ai";
import {
  type EmbeddingModelMiddleware as FormerEmbeddingModelMiddleware,
  type LanguageModelMiddleware as FormerLanguageModelMiddleware,
  wrapLanguageModel as formerWrapLanguageModel,
} from "ai-6";
import OpenAI from "openai";
import { RateLimiter } from "tollgate";
import {
  type BudgetCharge,
  BudgetDenied,
  type BudgetMiddleware,
  type BudgetOptions,
  type BudgetPolicy,
  budget,
  budgetFetch,
  budgetRun,
  dollars,
  type ModelUsage,
  usd,
} from "tollgate/ai";
import { RemoteLimiter } from "tollgate/client";
import { RedisLimiter } from "tollgate/redis";
import { type Store, StoreLimiter } from "tollgate/store";

declare const store: Store;
declare const client: { send(key: string, args: readonly string[]): Promise<unknown> };
declare const model: Parameters<typeof wrapLanguageModel>[0]["model"];
declare const formerModel: Parameters<typeof formerWrapLanguageModel>[0]["model"];
declare const provider: Parameters<typeof wrapProvider>[0]["provider"];
declare const embedding: EmbeddingModel;

const names: readonly BudgetPolicy[] = [
  "requests",
  "tokens",
  "inputTokens",
  "outputTokens",
  "usd",
  "running",
];
const policy = { name: "usd", algorithm: "fix_window", limit: usd("20"), scale: "month" } as const;
const prices = { "gpt-5": { input: "1.25", cachedInput: "0.125", output: "10" } };

for (const limiter of [
  new RateLimiter(policy),
  new RedisLimiter(policy, { client }),
  new StoreLimiter(policy, { store }),
  new RemoteLimiter({ url: "https://limits.example.com", token: "t", policy: names }),
])
  budget({ limiter, key: "user:42", prices });

const options: BudgetOptions = {
  limiter: new RateLimiter(policy),
  key: async ({ model, inputTokens }) => `${model}:${inputTokens}`,
  prices,
  estimate: ({ outputTokens }) => ({ outputTokens: outputTokens / 2, usd: "0.01" }),
  wait: "30s",
};

budgetFetch({
  ...options,
  prices: ({ model, usage }) => (model === "gpt-5" ? { input: "1.25", output: "10" } : priceOf(usage)),
  maxOutputTokens: { "gpt-5": 32_000 },
  onAbort: "reserved",
  onCharge: ({ usd, usage }: BudgetCharge) => console.log(dollars(usd ?? 0), usage?.uses["images"]),
  softLimits: { usd: 0.8 },
  onSoftLimit: async ({ used, limit }) => console.log(used / limit),
  onUnknown: ({ url }) => (url.endsWith("/agents") ? "count" : "error"),
});
const priceOf = ({ outputTokens }: ModelUsage): string | undefined => (outputTokens > 5 ? "0.5" : undefined);

const middleware: BudgetMiddleware = budget({
  ...options,
  onDenied: (denied) => console.warn(denied.retryAfter),
});
export const current: LanguageModelMiddleware & EmbeddingModelMiddleware = middleware;
export const former: FormerLanguageModelMiddleware & FormerEmbeddingModelMiddleware = middleware;
export const images: ImageModelMiddleware = middleware;
wrapLanguageModel({ model, middleware });
formerWrapLanguageModel({ model: formerModel, middleware: [middleware] });
wrapProvider({ provider, languageModelMiddleware: middleware });

export { embedding };

const fetch = budgetFetch({ ...options, onDenied: ({ key }) => new Response(`no ${key}`, { status: 402 }) });
new OpenAI({ fetch });
new Anthropic({ fetch });
export const response: Response = await fetch("https://api.example.com", { method: "POST" });

const text: string = await budgetRun(options)(async ({ report, add }) => {
  report({ inputTokens: 5, outputTokens: 7 });
  add({ promptTokenCount: 5, candidatesTokenCount: 7 });
  return "done";
});
export const wait: number | undefined = new Error(text) instanceof BudgetDenied ? 5 : undefined;

// @ts-expect-error: a price is a decimal string.
budget({ ...options, prices: { "gpt-5": { input: 1.25, output: "10" } } });
// @ts-expect-error: the key is required.
budget({ limiter: options.limiter });
// @ts-expect-error: no such policy.
export const wrong: BudgetPolicy = "tpm";
