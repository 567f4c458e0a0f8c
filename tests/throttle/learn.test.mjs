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
      Date: new Date(now).toUTCString(),
      "anthropic-ratelimit-requests-limit": limit,
      "anthropic-ratelimit-requests-remaining": remaining,
      "anthropic-ratelimit-requests-reset": iso(now + resetAfter),
    }),
  },
  "Anthropic, a large bucket": {
    policy: { algorithm: "token_bucket", capacity: 1_000, refillRate: 1_000, per: "1m" },
    headers: ({ limit, remaining, resetAfter }, now) => ({
      Date: new Date(now).toUTCString(),
      "anthropic-ratelimit-requests-limit": limit,
      "anthropic-ratelimit-requests-remaining": remaining,
      "anthropic-ratelimit-requests-reset": iso(now + resetAfter),
    }),
  },
  "dates without the server's clock": {
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

/** How long a provider takes for one call, in milliseconds, as long as it is used evenly. */
function intervalOf({ scale = "1s", limit, capacity, refillRate, per = scale }) {
  const time = per === "1m" ? 60_000 : 1_000;
  return time / (limit ?? (per === "1m" ? capacity : refillRate));
}

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
          const interval = intervalOf(provider.policy);
          // What it learns at first may be rough; then no call waits more than three times as long as it needs to.
          const longest = Math.max(...gaps(sent.slice(100)));
          assert.ok(longest <= 3 * interval + 100, `${longest} ms, where ${interval} ms are needed`);
          // All of the limit is used, but for a little.
          assert.ok(sent.at(-1) <= 200 * interval * 1.1 + 5_000, `${sent.at(-1)} ms`);
        });
  });

const window = providers["a window, with seconds"];

test("every gap in a window is the same, to a millisecond", async () => {
  const { sent, ask } = provide(providers["OpenAI, a bucket"], 700);
  await ask(1);
  await ask(59);
  const even = gaps(sent.slice(2));
  assert.ok(Math.max(...even) - Math.min(...even) <= 1, `${even}`);
});

test("what others use of the limit is learned, too", async () => {
  const { time, limiter, sent, statuses, ask } = provide(window, 20);
  await ask(1);
  limiter.hit("account", 30);
  await ask(10);
  await ask(40);
  assert.deepEqual(new Set(statuses), new Set([200]));
  assert.ok(sent.at(-1) > 60_000, "the rest of the limit was spread over the minute");
  assert.equal(time.timers, 0);
});

test("the expected wait is the actual one", async () => {
  const { time, throttle, sent, ask } = provide(providers["OpenAI, a bucket"], 20);
  await ask(1);
  const began = time.now;
  const waits = [];
  const passed = [];
  for (let number = 0; number < 4; number += 1)
    throttle
      .acquire({
        key: "https://api.example.com",
        onChange: ({ wait }) => {
          waits[number] ??= wait;
        },
      })
      .then(() => passed.push(time.now - began));
  await settled();
  await time.pass(10_000);
  assert.equal(sent.length, 1);
  assert.deepEqual(waits.slice(-3), passed.slice(-3));
});

test("nothing is learned without headers, and a failed request frees its place", async () => {
  const time = new FakeTime();
  let count = 0;
  const throttle = new Throttle(generous, {
    clock: time.clock,
    timer: time.timer,
    learn: true,
    fetch: async () => {
      count += 1;
      if (count % 2 === 0) throw new Error("no network");
      return new Response("");
    },
  });
  const outcomes = Array.from({ length: 20 }, () =>
    throttle.fetch("https://api.example.com/").then(
      ({ status }) => status,
      ({ message }) => message,
    ),
  );
  while (count === 0) await settled();
  await time.pass(20);
  assert.equal((await Promise.all(outcomes)).filter((each) => each === 200).length, 10);
});

/** A throttle whose requests are answered by hand; it notes when each was sent. */
async function byHand() {
  const time = new FakeTime();
  const began = time.now;
  const sent = [];
  const answers = [];
  const throttle = new Throttle(generous, {
    clock: time.clock,
    timer: time.timer,
    learn: true,
    random: () => 0,
    fetch: () => {
      sent.push(time.now - began);
      return new Promise((resolve) => {
        answers.push((remaining, reset) => {
          const headers = {
            "X-RateLimit-Limit": 100,
            "X-RateLimit-Remaining": remaining,
            "X-RateLimit-Reset": reset,
          };
          resolve(new Response("", { headers }));
        });
      });
    },
  });
  const ask = (count) =>
    Promise.all(Array.from({ length: count }, () => throttle.fetch("https://api.example.com/")));
  ask(2);
  while (sent.length < 2) await settled();
  return { time, sent, answers, ask };
}

test("a response that comes after that of a later request is out of date", async () => {
  const { time, sent, answers, ask } = await byHand();
  answers[1](1, 60);
  await settled();
  answers[0](60, 60);
  await settled();
  ask(1);
  await time.pass(59_000);
  assert.equal(sent.length, 2);
  await time.pass(1_000);
  assert.deepEqual(sent, [0, 0, 60_000]);
});

test("if requests under way use all that is left, the next one is sent at the reset", async () => {
  const { time, sent, answers, ask } = await byHand();
  await time.pass(10_000);
  answers[0](1, 50);
  await settled();
  ask(1);
  await time.pass(49_999);
  assert.equal(sent.length, 2);
  await time.pass(1);
  assert.deepEqual(sent, [0, 0, 60_000]);
});

test("hostile numbers neither stop a call nor let one through too soon", async () => {
  const hostile = [
    "0",
    "-1",
    "1e308",
    "9".repeat(300),
    "NaN",
    "0.5",
    "1795003260",
    "6m0s",
    "",
    "0x10",
    "1.5",
  ];
  for (const limit of hostile)
    for (const remaining of hostile)
      for (const reset of [
        "0",
        "1",
        "9".repeat(300),
        "0.0001",
        "1ms",
        "999999d",
        "Sun Nov  6 08:49:37 1994",
      ]) {
        const time = new FakeTime();
        let count = 0;
        const throttle = new SmallThrottle(generous, {
          clock: time.clock,
          timer: time.timer,
          learn: true,
          maxHold: 1_000,
          random: () => 0,
          fetch: async () => {
            count += 1;
            return new Response("", {
              headers: {
                "X-RateLimit-Limit-Requests": limit,
                "X-RateLimit-Remaining-Requests": remaining,
                "X-RateLimit-Reset-Requests": reset,
                "RateLimit-Limit": limit,
                "RateLimit-Remaining": remaining,
                "RateLimit-Reset": reset,
              },
            });
          },
        });
        const first = throttle.fetch("https://api.example.com/");
        while (count === 0) await settled();
        assert.equal((await first).status, 200);
        const second = throttle.fetch("https://api.example.com/", { signal: AbortSignal.abort("enough") });
        await assert.rejects(second, (error) => error === "enough");
        throttle[Symbol.dispose]();
        assert.equal(time.timers, 0);
      }
});

test("a server with ever other limits and keys fills no memory", async () => {
  const time = new FakeTime();
  let count = 0;
  const throttle = new SmallThrottle(generous, {
    clock: time.clock,
    timer: time.timer,
    learn: true,
    maxHold: 0,
    keyOf: () => `key ${count % 3_000}`,
    fetch: async () => {
      count += 1;
      const names = Array.from({ length: 100 }, (_, at) => `"${count}.${at}";r=${at + 1};t=1`);
      return new Response("", { headers: { RateLimit: names.join() } });
    },
  });
  const first = throttle.fetch("https://api.example.com/");
  while (count === 0) await settled();
  await first;
  for (let key = 0; key < 3_000; key += 1) {
    await throttle.fetch("https://api.example.com/");
    time.now += 1;
  }
  assert.equal(count, 3_001);
  assert.equal(throttle.pending, 0);
});

test("a clock that steps back or ahead does not stop it", async () => {
  const { time, sent, statuses, throttle, ask } = provide(window, 20);
  await ask(2);
  time.jump(-3_600_000);
  await ask(3);
  time.jump(7_200_000);
  await ask(3);
  assert.equal(sent.length, 8);
  assert.deepEqual([throttle.pending, new Set(statuses)], [0, new Set([200])]);
});

test("a budget that tabs share learns nothing: an error says so", () => {
  mock.method(console, "warn", () => {});
  assert.throws(() => new Throttle(generous, { learn: true, shared: "tabs" }), {
    code: "invalid_option",
    message: "learn: true is not accepted with shared: other tabs use the same limits",
  });
});
