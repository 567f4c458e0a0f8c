// A throttle that learns a server's limits runs into no 429 of any kind of provider, and its calls are even.

import assert from "node:assert/strict";
import test, { describe, mock } from "node:test";
import { RateLimiter, rateLimitHeaders, Throttle } from "tollgate";
import { Throttle as SmallThrottle } from "tollgate/throttle";
import { FakeTime, settled } from "./lib/time.mjs";

/** More than any of the providers allows. */
const generous = { algorithm: "token_bucket", capacity: 5, refillRate: 1_000 };

const iso = (at) => `${new Date(Math.ceil(at / 1_000) * 1_000).toISOString().slice(0, 19)}Z`;

/** The headers of providers, by their limiter's decision. */
const providers = {
  "a window, with seconds": {
    policy: { algorithm: "fix_window", limit: 60, scale: "1m" },
    headers: ({ limit, remaining, resetAfter }) => ({
      "X-RateLimit-Limit": limit,
      "X-RateLimit-Remaining": remaining,
      "X-RateLimit-Reset": Math.ceil(resetAfter / 1_000),
    }),
  },
  "GitHub, with seconds since the epoch": {
    policy: { algorithm: "fix_window_per_key", limit: 120, scale: "1m" },
    status: 403,
    headers: ({ limit, remaining, resetAfter }, now) => ({
      "X-RateLimit-Limit": limit,
      "X-RateLimit-Remaining": remaining,
      "X-RateLimit-Reset": Math.ceil((now + resetAfter) / 1_000),
    }),
  },
  "OpenAI, a bucket": {
    policy: { algorithm: "token_bucket", capacity: 60, refillRate: 60, per: "1m" },
    headers: ({ limit, remaining, resetAfter }) => ({
      "x-ratelimit-limit-requests": limit,
      "x-ratelimit-remaining-requests": remaining,
      "x-ratelimit-reset-requests": `${Math.floor(resetAfter / 1_000)}s${resetAfter % 1_000}ms`,
      "x-ratelimit-limit-tokens": 150_000,
      "x-ratelimit-remaining-tokens": 0,
      "x-ratelimit-reset-tokens": "6m0s",
    }),
  },
  "Anthropic, a bucket, with dates": {
    policy: { algorithm: "token_bucket", capacity: 50, refillRate: 50, per: "1m" },
    headers: ({ limit, remaining, resetAfter }, now) => ({
      "anthropic-ratelimit-requests-limit": limit,
      "anthropic-ratelimit-requests-remaining": remaining,
      "anthropic-ratelimit-requests-reset": iso(now + resetAfter),
    }),
  },
  "Tollgate, a window": { policy: { algorithm: "fix_window", limit: 60, scale: "1m" } },
  "Tollgate, a bucket": { policy: { algorithm: "token_bucket", capacity: 10, refillRate: 1 } },
  "Tollgate, a log": { policy: { algorithm: "sliding_window", limit: 30, scale: "1m" } },
};

/** A provider under a fake time, whose responses take a while. */
function provide({ policy, headers, status = 429 }, latency, options = {}, Class = Throttle) {
  const time = new FakeTime();
  const limiter = new RateLimiter(policy, { clock: time.clock });
  const headersOf = headers ?? ((decision) => rateLimitHeaders(decision, limiter.policies));
  const pass = (milliseconds) => new Promise((resolve) => time.timer(resolve, milliseconds));
  const began = time.now;
  const sent = [];
  const statuses = [];
  const fetch = async () => {
    sent.push(time.now - began);
    await pass(latency / 2);
    const decision = limiter.hit("account");
    const response = new Response("", {
      status: decision.allowed ? 200 : status,
      headers: headersOf(decision, time.now),
    });
    statuses.push(response.status);
    await pass(latency / 2);
    return response;
  };
  const throttle = new Class(generous, {
    clock: time.clock,
    timer: time.timer,
    random: () => 0,
    learn: true,
    fetch,
    ...options,
  });
  /** Sends so many requests, and lets time pass until all have a response. */
  const ask = async (count, most = 600_000) => {
    let left = count;
    const all = Array.from({ length: count }, async () => {
      await throttle.fetch("https://api.example.com/v1", { method: "POST", body: "{}" });
      left -= 1;
    });
    // The code that learns is loaded first, which takes no time of this clock.
    while (sent.length === 0) await settled();
    for (let passed = 0; left > 0 && passed < most; passed += 1_000) await time.pass(1_000);
    assert.equal(left, 0);
    await Promise.all(all);
  };
  return { time, throttle, limiter, sent, statuses, ask };
}

const gaps = (times) => times.slice(1).map((at, index) => at - times[index]);

for (const [entry, Class] of [
  ["tollgate", Throttle],
  ["tollgate/throttle", SmallThrottle],
])
  describe(`no 429, and even calls, by ${entry}`, () => {
    for (const [name, provider] of Object.entries(providers))
      for (const latency of [20, 700, 3_000])
        test(`${name}, ${latency} ms`, async () => {
          const { sent, statuses, ask } = provide(provider, latency, {}, Class);
          // Nothing is known before the first response.
          await ask(1);
          await ask(199);
          assert.deepEqual(new Set(statuses), new Set([200]));
          const even = gaps(sent.slice(5));
          console.log(`   ${name} ${latency}: min ${Math.min(...even)}, max ${Math.max(...even)}, total ${sent.at(-1)}`);
        });
  });
