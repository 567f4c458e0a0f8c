// An operation on an object is retried before its timeout, and not after it.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { TollgateEnv } from "../../js/cloudflare/env.ts";
import { ask } from "../../js/cloudflare/object/ask.ts";

const retryable = Object.assign(new Error("the object was reset"), { retryable: true });

/** An environment whose object fails for the first time after so many milliseconds, and then responds at once. */
function failingOnce(after: number) {
  let calls = 0;
  const apply = () => {
    calls += 1;
    if (calls > 1) return Promise.resolve("1 1 10 9 0 0 0 0 0");
    return new Promise((_, reject) => setTimeout(() => reject(retryable), after));
  };
  const env = { LIMITERS: { getByName: () => ({ apply }) } } as unknown as TollgateEnv;
  return { env, calls: () => calls };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});

afterEach(() => {
  vi.useRealTimers();
});

it("an operation is retried before its timeout, and not after it", async () => {
  const early = failingOnce(99);
  const reply = ask(early.env, 100, "object", "hit", "", 1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await reply).toBe("1 1 10 9 0 0 0 0 0");
  expect(early.calls()).toBe(2);

  const late = failingOnce(101);
  const failure = expect(ask(late.env, 100, "object", "hit", "", 1)).rejects.toMatchObject({
    failure: "timeout",
  });
  await vi.advanceTimersByTimeAsync(1_000);
  await failure;
  expect(late.calls()).toBe(1);
});
