// `throttledFetch` obeys the waits that servers return, retries what it may, and nothing else.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { serveSite } from "../../lib/browser/site.mjs";
import { after, before } from "../../lib/hooks.mjs";

const began = 1_800_000_000_000;
const open = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Methods": "*",
  "Access-Control-Expose-Headers": "*, Retry-After",
};

/** What the server answers next, and what it was asked. */
let script = [];
let requests = [];
async function answer(request, response) {
  let body = "";
  for await (const chunk of request) body += chunk;
  requests.push(`${request.method} ${body}`.trim());
  const [status, headers = {}] = script.length > 1 ? script.shift() : script[0];
  // The page has a clock of its own, by which the dates of the tests are.
  response.sendDate = false;
  response
    .writeHead(status, { ...open, "Cache-Control": "no-store", ...headers })
    .end(`answer ${requests.length}`);
}

let chromium;
let site;
let other;
let page;
before(async () => {
  [chromium, site, other] = await Promise.all([
    launch(),
    serveSite({ "/api": answer }),
    serveSite({ "/api": answer }),
  ]);
  ({ page } = await openPage(await chromium.newContext(), `${site.url}/blank`));
});
after(async () => {
  await chromium?.close();
  site?.close();
  other?.close();
});

/** Fetches in the page, one after the other, under a clock that jumps over every wait and notes it. */
async function run(answers, calls, options = {}) {
  [script, requests] = [[...answers], []];
  return page.evaluate(
    async ({ began, calls, options }) => {
      const { Throttle } = await import("/package.js");
      let now = began;
      const waits = [];
      const { frozen, ...rest } = options;
      const timer = (callback, wait) => {
        if (frozen) return () => {};
        const handle = setTimeout(() => {
          waits.push(wait);
          now += wait;
          callback();
        });
        return () => clearTimeout(handle);
      };
      const policy = { algorithm: "token_bucket", capacity: 1_000, refillRate: 1_000 };
      const throttle = new Throttle(policy, { clock: () => now, timer, random: () => 0, ...rest });
      const outcomes = [];
      for (const { url = "/api", abort, stream, ...init } of calls) {
        if (abort) init.signal = AbortSignal.abort("stopped");
        if (stream) Object.assign(init, { body: new Blob(["a stream"]).stream(), duplex: "half" });
        try {
          const response = await throttle.fetch(url, init);
          outcomes.push(response.status);
        } catch (error) {
          outcomes.push(error.code ?? error);
        }
      }
      return { outcomes, waits };
    },
    { began, calls, options },
  );
}

const once = [{}];
const date = (milliseconds) => new Date(began + milliseconds).toUTCString();
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const rfc850 = (milliseconds) => {
  const [, day, month, year, time] = date(milliseconds).split(" ");
  return `${weekdays[new Date(began + milliseconds).getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
};
const dateOfC = (milliseconds) => {
  const [weekday, day, month, year, time] = date(milliseconds).split(" ");
  return `${weekday.slice(0, 3)} ${month} ${day.replace(/^0/, " ")} ${time} ${year}`;
};

describe("429, in the forms it comes in", () => {
  const forms = [
    ["Retry-After in seconds", { "Retry-After": "7" }, 7_000],
    ["Retry-After as a date", { "Retry-After": date(5_000) }, 5_000],
    ["RateLimit with its time", { RateLimit: '"api";r=0;t=3' }, 3_000],
    [
      "RateLimit without a time, and its policy's window",
      { RateLimit: '"api";r=0', "RateLimit-Policy": '"api";q=5;w=4' },
      4_000,
    ],
    ["the longest of several limits", { RateLimit: '"a";r=0;t=2, "b";r=0;t=9, "c";r=4;t=60' }, 9_000],
    ["Retry-After before RateLimit", { "Retry-After": "2", RateLimit: '"api";r=0;t=30' }, 2_000],
    ["a malformed Retry-After, then RateLimit", { "Retry-After": "soon", RateLimit: '"api";r=0;t=6' }, 6_000],
    ["a negative Retry-After: a pause of our own", { "Retry-After": "-5" }, 1_000],
    ["a fraction in Retry-After", { "Retry-After": "1.5" }, 1_500],
    ["Retry-After as a date of RFC 850", { "Retry-After": rfc850(5_000) }, 5_000],
    ["Retry-After as a date of C", { "Retry-After": dateOfC(5_000) }, 5_000],
    ["milliseconds before Retry-After", { "Retry-After-Ms": "418", "Retry-After": "1" }, 418],
    ["seconds until the reset", { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "8" }, 8_000],
    ["a malformed RateLimit: a pause of our own", { RateLimit: '"api;r=0;t=60' }, 1_000],
    ["from a cache: a pause of our own", { "Retry-After": "90", Age: "30" }, 1_000],
    ["with no word of a time: a pause of our own", {}, 1_000],
  ];
  for (const [name, headers, wait] of forms) {
    test(name, async () => {
      assert.deepEqual(await run([[429, headers], [200]], once), { outcomes: [200], waits: [wait] });
      assert.equal(requests.length, 2);
    });
  }

  test("a date that has passed is no wait", async () => {
    const { outcomes, waits } = await run([[503, { "Retry-After": date(-5_000) }]], once);
    assert.deepEqual({ outcomes, waits }, { outcomes: [503], waits: [] });
  });

  test("our own pauses grow, and the tries are bounded", async () => {
    assert.deepEqual(await run([[429]], once), { outcomes: [429], waits: [1_000, 2_000, 4_000] });
    assert.equal(requests.length, 4);
  });
});

describe("other responses", () => {
  test("503 with Retry-After is tried again, without it is passed on", async () => {
    assert.deepEqual(await run([[503, { "Retry-After": "3" }], [200]], once), {
      outcomes: [200],
      waits: [3_000],
    });
    assert.deepEqual(await run([[503]], once), { outcomes: [503], waits: [] });
  });

  test("a 200 with nothing left makes the next request wait", async () => {
    const answers = [[200, { RateLimit: '"api";r=0;t=2' }], [200]];
    assert.deepEqual(await run(answers, [{}, {}]), { outcomes: [200, 200], waits: [2_000] });
  });

  test("but not when it came from a cache", async () => {
    const answers = [[200, { RateLimit: '"api";r=0;t=2', Age: "1" }], [200]];
    assert.deepEqual(await run(answers, [{}, {}]), { outcomes: [200, 200], waits: [] });
  });

  test("another origin does not wait", async () => {
    const answers = [[200, { RateLimit: '"api";r=0;t=60' }], [200]];
    const calls = [{}, { url: `${other.url}/api` }, {}];
    const outcome = await run(answers, calls, { frozen: true, maxWait: 59_999 });
    assert.deepEqual(outcome, { outcomes: [200, 200, "max_wait"], waits: [] });
  });
});

describe("requests that are sent again", () => {
  const limited = [[429, { "Retry-After": "1" }], [200]];
  const post = { method: "POST", body: "pay" };

  test("a POST that was denied was not carried out", async () => {
    assert.deepEqual(await run(limited, [post]), { outcomes: [200], waits: [1_000] });
    assert.deepEqual(requests, ["POST pay", "POST pay"]);
  });

  for (const [status, headers] of [
    [529, {}],
    [403, { "Retry-After": "1" }],
    [403, { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1" }],
  ])
    test(`also by ${status}, ${JSON.stringify(headers)}`, async () => {
      assert.deepEqual(await run([[status, headers], [200]], [post]), { outcomes: [200], waits: [1_000] });
    });

  test("a 403 that is no limit is passed on", async () => {
    const headers = { "X-RateLimit-Remaining": "7", "X-RateLimit-Reset": "1" };
    assert.deepEqual(await run([[403, headers]], [post, {}]), { outcomes: [403, 403], waits: [] });
  });

  test("after a 503 a POST is not: it may have been carried out. The next request waits", async () => {
    const answers = [[503, { "Retry-After": "1" }], [200]];
    assert.deepEqual(await run(answers, [post, {}]), { outcomes: [503, 200], waits: [1_000] });
    assert.deepEqual(requests, ["POST pay", "GET"]);
  });

  test('with `retry: "safe"` a POST is not, after any denial', async () => {
    assert.deepEqual(await run(limited, [post, {}], { retry: "safe" }), {
      outcomes: [429, 200],
      waits: [1_000],
    });
    assert.deepEqual(requests, ["POST pay", "GET"]);
    assert.deepEqual((await run(limited, [{}], { retry: "safe" })).outcomes, [200]);
  });

  test("a PUT is, with its body", async () => {
    assert.deepEqual((await run(limited, [{ method: "PUT", body: "text" }])).outcomes, [200]);
    assert.deepEqual(requests, ["PUT text", "PUT text"]);
  });
});

describe("giving up", () => {
  test("a signal ends it", async () => {
    assert.deepEqual(await run([[200]], [{ abort: true }]), { outcomes: ["stopped"], waits: [] });
    assert.equal(requests.length, 0);
  });

  test("a signal ends a wait in the middle", async () => {
    [script, requests] = [[[429, { "Retry-After": "3600" }]], []];
    const outcome = await page.evaluate(async () => {
      const { throttledFetch } = await import("/package.js");
      const politeFetch = throttledFetch({ algorithm: "token_bucket", capacity: 9, refillRate: 9 });
      const controller = new AbortController();
      const response = politeFetch("/api", { signal: controller.signal });
      const asked = () => performance.getEntriesByName(`${location.origin}/api`).length > 0;
      while (!asked()) await new Promise(requestAnimationFrame);
      controller.abort("enough");
      return response.catch((error) => error);
    });
    assert.equal(outcome, "enough");
  });

  test("maxWait bounds all of it", async () => {
    const outcome = await run([[429, { "Retry-After": "10" }]], once, { maxWait: 9_999 });
    assert.deepEqual(outcome, { outcomes: ["max_wait"], waits: [] });
  });
});
