// Of 1,000 parallel hits on one object exactly the limit is admitted, under every algorithm.

import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Policy } from "../../../js/types.ts";
import { start } from "../lib.ts";

const policies: Policy[] = [
  { algorithm: "fix_window", limit: 100, scale: "1m" },
  { algorithm: "fix_window_per_key", limit: 100, scale: "1m" },
  { algorithm: "sliding_window", limit: 100, scale: "1m" },
  { algorithm: "sliding_counter", limit: 100, scale: "1m" },
  { algorithm: "token_bucket", capacity: 100, refillRate: 1 },
  { algorithm: "leaky_bucket", capacity: 100, leakRate: 1 },
];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
});

async function allowed(name: string, policy: Policy | Policy[]): Promise<number> {
  const object = env.LIMITERS.getByName(`parallel:${name}`);
  const decisions = await Promise.all(Array.from({ length: 1_000 }, () => object.hit(policy)));
  return decisions.filter(({ allowed }) => allowed).length;
}

it.each(policies)("$algorithm admits exactly 100 of 1,000 parallel hits", async (policy) => {
  expect(await allowed(policy.algorithm, policy)).toBe(100);
});

it("all of them together admit exactly 100, and each is charged for those", async () => {
  expect(await allowed("together", policies)).toBe(100);
  const object = env.LIMITERS.getByName("parallel:together");
  expect(await object.get(policies, "fix_window")).toBe(100);
  expect(await object.get(policies, "token_bucket")).toBe(0);
});
