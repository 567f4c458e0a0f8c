// An operation is sent once: if its reply is lost it was charged once, and only the platform repeats calls.

import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { TollgateEnv } from "../../../js/cloudflare/env.ts";
import { ask, askInJson } from "../../../js/cloudflare/object/ask.ts";
import { logged, someone, start, statuses, workerWith } from "../lib.ts";

const retryable = Object.assign(new Error("the object was reset"), { retryable: true });
const policy = { algorithm: "fix_window", limit: 10, scale: "1h", name: "api" } as const;

/** Objects that do what they are told, and whose reply is lost in every other call. */
function losingReplies() {
  let calls = 0;
  const lost = async <Reply>(reply: Promise<Reply>): Promise<Reply> => {
    const number = ++calls;
    const done = await reply;
    if (number % 2 === 1) throw retryable;
    return done;
  };
  const getByName = (name: string) => {
    const stub = env.LIMITERS.getByName(name);
    return {
      count: (...call: Parameters<typeof stub.count>) => lost(stub.count(...call) as Promise<unknown>),
      question: (json: string) => lost(stub.question(json) as Promise<string>),
    };
  };
  return { LIMITERS: { getByName }, calls: () => calls };
}

/** How objects are reached: the region and the jurisdiction are the platform's. */
const reach = { timeout: 60_000, locationHint: undefined, jurisdiction: undefined };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it("a hit whose reply is lost is charged once", async () => {
  const losing = losingReplies();
  const own = { ...env, ...losing } as unknown as TollgateEnv;
  const policies = JSON.stringify([policy]);
  await expect(ask(own, reach, "lost", (stub) => stub.count("hit", policies, 1))).rejects.toMatchObject({
    failure: "failed",
  });
  expect(await ask(own, reach, "lost", (stub) => stub.count("get", policies, 0))).toBe("1");
  const question = JSON.stringify({ operation: "hit", cost: 1, policies: [policy] });
  await expect(askInJson(own, reach, "lost", question)).rejects.toMatchObject({ failure: "failed" });
  expect(await ask(own, reach, "lost", (stub) => stub.count("get", policies, 0))).toBe("2");
  expect(losing.calls()).toBe(4);
});

it("requests through the gateway whose replies are lost are charged once each", async () => {
  logged();
  const losing = losingReplies();
  const config = {
    upstream: "ORIGIN",
    policies: { api: policy },
    rules: [{ path: "/*", policies: "api", onError: "allow" }],
  };
  const { fetch, reached } = workerWith(config, losing);
  const headers = someone();
  // Each is counted once, so that ten pass; the denial of the eleventh is lost, and it passes by onError.
  expect(await statuses(13, () => fetch("/", { headers }))).toEqual([...Array(11).fill(200), 429, 429]);
  expect(reached).toHaveLength(11);
  expect(losing.calls()).toBe(12);
});

it("a late reply is a timeout, and nothing is sent again", async () => {
  vi.useRealTimers();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  let calls = 0;
  const count = () => {
    calls += 1;
    return new Promise((_, reject) => setTimeout(() => reject(retryable), 101));
  };
  const own = { LIMITERS: { getByName: () => ({ count }) } } as unknown as TollgateEnv;
  const failure = expect(
    ask(own, { ...reach, timeout: 100 }, "object", (stub) => stub.count("hit", "", 1)),
  ).rejects.toMatchObject({
    failure: "timeout",
  });
  await vi.advanceTimersByTimeAsync(1_000);
  await failure;
  expect(calls).toBe(1);
});
