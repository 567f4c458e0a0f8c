// `offline: "wait"`: without a network no call is let through, and none fails that may be sent again.

import assert from "node:assert/strict";
import test from "node:test";
import { launch, openPage } from "../../lib/browser/chromium.mjs";
import { serveSite } from "../../lib/browser/site.mjs";
import { after, before } from "../../lib/hooks.mjs";

let chromium;
let site;
/** Requests that the server has seen, those it leaves open, and whether the network is cut. */
let asked = [];
const open = new Set();
let isCut = false;
const routes = {
  "/api": (request, response) => {
    // A browser tries once more by itself.
    if (isCut) return request.socket.destroy();
    const { searchParams } = new URL(request.url, "http://localhost");
    asked.push(`${request.method} ${searchParams.get("name")}`);
    if (searchParams.get("name") === "slow" && asked.length === 1) open.add(response);
    else return response.writeHead(200, { "Cache-Control": "no-store" }).end("ok");
  },
};
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite(routes)]);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

/** A page whose network a test can cut. */
async function opened(t, options = { offline: "wait" }) {
  asked = [];
  isCut = false;
  const context = await chromium.newContext();
  t.after(() => context.close());
  const { page } = await openPage(context, `${site.url}/blank`);
  await page.evaluate(async (options) => {
    const { Throttle } = await import("/package.js");
    globalThis.throttle = new Throttle({ algorithm: "token_bucket", capacity: 9, refillRate: 9 }, options);
    globalThis.ended = [];
    globalThis.ask = (name, init) => {
      throttle.fetch(`/api?name=${name}`, init).then(
        async (response) => ended.push(`${name} ${await response.text()}`),
        (error) => ended.push(`${name} ${error.code ?? error.name}`),
      );
    };
  }, options);
  /** Cuts the network, or joins it, and waits until the page knows. */
  const setOffline = async (isOffline) => {
    isCut = isOffline;
    await context.setOffline(isOffline);
    await page.waitForFunction((isOffline) => navigator.onLine === !isOffline, isOffline);
  };
  const ended = async (count) => {
    await page.waitForFunction((count) => globalThis.ended.length >= count, count);
    return page.evaluate(() => globalThis.ended);
  };
  return { page, setOffline, ended };
}

test("calls wait while the network is cut, and go through in order when it is back", async (t) => {
  const { page, setOffline, ended } = await opened(t);
  await setOffline(true);
  await page.evaluate(() => {
    for (const name of ["a", "b"]) ask(name);
    throttle.wrap((name) => ended.push(name))("wrapped");
  });
  assert.deepEqual(await page.evaluate(() => [throttle.pending, ended.length]), [3, 0]);
  await setOffline(false);
  assert.deepEqual((await ended(3)).toSorted(), ["a ok", "b ok", "wrapped"]);
  assert.deepEqual(asked.toSorted(), ["GET a", "GET b"]);
  assert.equal(await page.evaluate(() => throttle.pending), 0);
});

test("a request that the cut has ended is sent again if that is safe, and fails if not", async (t) => {
  for (const [method, expected] of [
    ["GET", "slow ok"],
    ["POST", "slow TypeError"],
  ]) {
    const { page, setOffline, ended } = await opened(t, { offline: "wait", retries: 0 });
    await page.evaluate((method) => ask("slow", { method }), method);
    while (open.size === 0) await page.evaluate(() => new Promise((resolve) => setTimeout(resolve)));
    await setOffline(true);
    for (const response of open) response.destroy();
    open.clear();
    if (method === "GET") await page.waitForFunction(() => throttle.pending === 1);
    else await ended(1);
    await setOffline(false);
    assert.deepEqual(await ended(1), [expected]);
    assert.deepEqual(asked, method === "GET" ? ["GET slow", "GET slow"] : ["POST slow"]);
  }
});

test("maxWait, a signal and clear end the wait for the network", async (t) => {
  const { page, setOffline } = await opened(t);
  await setOffline(true);
  const codes = await page.evaluate(async () => {
    const leaving = new AbortController();
    const waits = [
      throttle.acquire({ maxWait: 5 }),
      throttle.acquire({ signal: leaving.signal }),
      throttle.acquire(),
    ].map((wait) => wait.catch((error) => error.code ?? error.name));
    const first = await waits[0];
    leaving.abort();
    const second = await waits[1];
    throttle.clear();
    return [first, second, await waits[2], throttle.pending];
  });
  // The last is the code of an AbortError of a platform.
  assert.deepEqual(codes, ["max_wait", 20, "cleared", 0]);
});

test("by default requests fail as they would without a throttle", async (t) => {
  const { page, setOffline, ended } = await opened(t, {});
  await setOffline(true);
  await page.evaluate(() => ask("a"));
  assert.deepEqual(await ended(1), ["a TypeError"]);
});

test("onChange and subscribe report that the wait is unknown", async (t) => {
  const { page, setOffline } = await opened(t);
  await setOffline(true);
  const places = await page.evaluate(async () => {
    const seen = [];
    const states = [];
    throttle.subscribe((state) => states.push(state));
    throttle.acquire({ onChange: (place) => seen.push(place) }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve));
    return [seen, states];
  });
  assert.deepEqual(places, [
    [{ position: 1, wait: undefined }],
    [{ pending: 1, position: 1, wait: undefined }],
  ]);
});
