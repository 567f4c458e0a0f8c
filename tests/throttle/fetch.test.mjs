// Waits after a denial vary within their bounds, only requests that may be are sent again, and odd responses stop nothing.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { Throttle } from "tollgate";
import { FakeTime } from "./lib/time.mjs";

/** A throttle that gets these responses, and notes when each request was sent. */
function answering(responses, options = {}) {
  const time = new FakeTime();
  const began = time.now;
  const sent = [];
  const throttle = new Throttle(
    { algorithm: "token_bucket", capacity: 1_000, refillRate: 1_000 },
    {
      clock: time.clock,
      timer: time.timer,
      random: () => 0,
      fetch: async (request) => {
        sent.push(`${request.method} ${await request.text()} ${time.now - began}`);
        return responses.length > 1 ? responses.shift() : responses[0];
      },
      ...options,
    },
  );
  const ask = async (init = { method: "POST", body: "pay" }) => {
    const response = throttle.fetch("https://api.example.com/", init);
    await time.pass(7_200_000);
    return response;
  };
  return { sent, ask, time, throttle };
}

const denied = (headers, status = 429) => new Response("", { status, headers });

describe("jitter", () => {
  for (const [headers, random, expected] of [
    [{ "Retry-After": "4" }, 0, 4_000],
    [{ "Retry-After": "4" }, 0.5, 5_000],
    [{ "Retry-After": "4" }, 1 - Number.EPSILON, 6_000],
    [{ "Retry-After": "600" }, 0.5, 602_500],
    [{ "Retry-After": "3599" }, 0.9, 3_600_000],
    [{}, 0.5, 1_250],
    [{ "Retry-After-Ms": "5" }, 0.01, 6],
    // No waits that are shorter, or longer than the bounds.
    [{ "Retry-After": "4" }, -3, 4_000],
    [{ "Retry-After": "4" }, 17, 6_000],
    [{ "Retry-After": "4" }, Number.NaN, 4_000],
    [{ "Retry-After": "4" }, "no number", 4_000],
  ])
    test(`${JSON.stringify(headers)}, ${random}`, async () => {
      const { sent, ask } = answering([denied(headers), new Response("")], { random: () => random });
      assert.equal((await ask()).status, 200);
      assert.deepEqual(sent, ["POST pay 0", `POST pay ${expected}`]);
    });

  test("by Math.random, in between", async () => {
    const { sent, ask } = answering([denied({ "Retry-After": "4" }), new Response("")], {
      random: undefined,
    });
    await ask();
    const at = Number(sent[1].split(" ")[2]);
    assert.ok(at >= 4_000 && at <= 6_000, `${at}`);
  });

  test("an error of it rejects its call only", async () => {
    const random = () => {
      throw new Error("broken");
    };
    const { ask, throttle } = answering([denied({}), new Response("")], { random });
    await assert.rejects(throttle.fetch("https://api.example.com/"), /^Error: broken$/);
    assert.equal((await ask()).status, 200);
    assert.equal(throttle.pending, 0);
  });
});

describe("sent again", () => {
  test("a POST after a denial, with its body, as often as `retries` says", async () => {
    const { sent, ask } = answering([denied({})], { retries: 2 });
    assert.equal((await ask()).status, 429);
    assert.deepEqual(sent, ["POST pay 0", "POST pay 1000", "POST pay 3000"]);
  });

  test("never a stream, since it is read once", async () => {
    const { sent, ask } = answering([denied({ "Retry-After": "1" }), new Response("")]);
    const body = new Blob(["stream"]).stream();
    assert.equal((await ask({ method: "POST", body, duplex: "half" })).status, 429);
    assert.equal(sent.length, 1);
  });

  for (const [status, headers, retry, expected] of [
    [529, {}, "any", 200],
    [403, { "Retry-After": "1" }, "any", 200],
    [403, {}, "any", 403],
    [503, { "Retry-After": "1" }, "any", 503],
    [500, { "Retry-After": "1" }, "any", 500],
    [429, {}, "safe", 429],
    [529, {}, "safe", 529],
  ])
    test(`POST, ${status} ${JSON.stringify(headers)}, ${retry}: ${expected}`, async () => {
      const { ask } = answering([denied(headers, status), new Response("")], { retry });
      assert.equal((await ask()).status, expected);
    });
});

test("headers that are no texts, from a fetch of the caller's own", async () => {
  const headers = new Map([
    ["Retry-After", 3],
    ["X-RateLimit-Limit", 60],
    ["X-RateLimit-Remaining", 0],
    ["X-RateLimit-Reset", { toString: () => "9" }],
  ]);
  const { sent, ask } = answering([
    { status: 429, headers },
    { status: 200, headers: new Map() },
  ]);
  assert.equal((await ask()).status, 200);
  assert.deepEqual(sent, ["POST pay 0", "POST pay 3000"]);
});
