import OpenAI, { RateLimitError } from "openai";
import { RateLimiter } from "tollgate";
import { budgetFetch } from "tollgate/ai";

const aDay = (capacity) => ({
  name: "tokens",
  algorithm: "token_bucket",
  capacity,
  refillRate: capacity,
  per: "1d",
});
const account = new RateLimiter(aDay(500));
const tenants = new RateLimiter(aDay(300));

const shared = budgetFetch({ limiter: account, key: "account" });
const clientFor = (tenant) =>
  new OpenAI({ fetch: budgetFetch({ limiter: tenants, key: tenant, fetch: shared }) });

const prompt = process.env.PROMPT ?? "Say hello in five languages.";

async function ask(tenant) {
  const stream = await clientFor(tenant).chat.completions.create({
    model: "gpt-5",
    messages: [{ role: "user", content: prompt }],
    max_completion_tokens: 200,
    stream: true,
  });
  let length = 0;
  for await (const { choices } of stream) length += choices[0].delta.content?.length ?? 0;
  const left = tenants.get(tenant);
  console.log(`${tenant}: ${length} characters, ${left} of 300 tokens are left`);
}

for (const tenant of ["a", "b", "a", "b"]) {
  await ask(tenant).catch((error) => {
    if (!(error instanceof RateLimitError)) throw error;
    console.log(`${tenant}: ${error.error.message.replace(/again in .*/, "again in …")}`);
  });
}
