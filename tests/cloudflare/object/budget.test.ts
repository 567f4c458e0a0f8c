// A budget over objects: 1,000 calls of a key are in flight at once, and each is charged what the provider says.

import { env } from "cloudflare:workers";
import { expect, it } from "vitest";
import { budgetFetch } from "../../../js/ai/index.ts";
import type { Policy } from "../../../js/types.ts";

const policies: Policy[] = [
  { name: "requests", algorithm: "fix_window", limit: 2_000, scale: "1h" },
  { name: "tokens", algorithm: "fix_window", limit: 10_000_000, scale: "1h" },
  { name: "usd", algorithm: "fix_window", limit: 1_000_000_000, scale: "1h" },
  { name: "running", algorithm: "concurrency", limit: 1_000, ttl: "1h" },
];
const prices = { "gpt-5": { input: "1.25", output: "10" } };
const count = 1_000;

it("charges 1,000 calls in flight, and denies the next", async () => {
  const key = "budget: in flight";
  let running = 0;
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let all = () => {};
  const begun = new Promise<void>((resolve) => {
    all = resolve;
  });
  const charges: (number | undefined)[] = [];
  const fetch = budgetFetch({
    limiter: env.LIMITERS,
    policy: policies,
    key,
    prices,
    ttl: "1h",
    onCharge: ({ usd }) => void charges.push(usd),
    fetch: async () => {
      running += 1;
      if (running === count) all();
      await opened;
      return Response.json({ usage: { prompt_tokens: 5, completion_tokens: 3 } });
    },
  });
  const body = JSON.stringify({ model: "gpt-5", messages: [], max_tokens: 100 });
  const ask = () => fetch("https://models.example.com/v1/chat/completions", { method: "POST", body });
  const asked = Array.from({ length: count }, ask);
  await begun;
  const denied = await ask();
  expect(denied.status).toBe(429);
  expect(((await denied.json()) as { error: { policies: string[] } }).error.policies).toEqual(["running"]);
  open();
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  const object = env.LIMITERS.getByName(key);
  const counts = await Promise.all(policies.map(({ name }) => object.get(policies, name)));
  // Five tokens of input and three of output are 36.25 millionths, rounded up.
  expect(counts).toEqual([count, 8 * count, 37 * count, 0]);
  expect(charges).toEqual(Array(count).fill(37));
});
