import { generateText, streamText, wrapLanguageModel } from "ai";
import { RateLimiter } from "tollgate";
import { BudgetDenied, budget, usd } from "tollgate/ai";
import { fakeModel } from "./fake-model.mjs";

const limiter = new RateLimiter([
  { name: "tokens", algorithm: "token_bucket", capacity: 400, refillRate: 400, per: "1h" },
  { name: "usd", algorithm: "fix_window", limit: usd("0.02"), scale: "month" },
  { name: "running", algorithm: "concurrency", limit: 2 },
]);
const prices = { "gpt-5": { input: "1.25", cachedInput: "0.125", output: "10" } };
const user = { id: "user:42" };

const model = wrapLanguageModel({
  model: fakeModel("gpt-5"),
  middleware: budget({ limiter, key: user.id, prices }),
});

const { text } = await generateText({ model, prompt: "Say hello.", maxOutputTokens: 100 });
console.log(text);

const stream = streamText({ model, prompt: "Count to three.", maxOutputTokens: 100 });
for await (const piece of stream.textStream) process.stdout.write(piece);
console.log();

try {
  await generateText({ model, prompt: "Tell me everything.", maxOutputTokens: 390 });
} catch (error) {
  if (!(error instanceof BudgetDenied)) throw error;
  console.log(`denied by ${error.decision.violated}: it may use ${error.reserved.tokens} tokens`);
}
console.log(`${limiter.get(user.id, "usd")} millionths of a dollar this month`);
