// The page of examples/vite-page, as Vite builds and previews it, in Chromium. Its clock and the server's move by hand.

import assert from "node:assert/strict";
import test, { before, mock } from "node:test";
import { build, preview } from "vite";
import { launch, patience } from "./lib/page.mjs";
import { freshExamples } from "./lib/project.mjs";

const started = 1_767_225_600_000;
const quiet = { logLevel: "warn" };

let root;
before(async () => {
  root = (await freshExamples("pages"))("vite-page");
  await build({ ...quiet, root });
});

/** The example's own server, which reads the time from here. */
async function previewed(t) {
  mock.timers.enable({ apis: ["Date"], now: started });
  t.after(() => mock.timers.reset());
  const server = await preview({ ...quiet, root, preview: { port: 0, strictPort: false } });
  t.after(() => server.close());
  return server.resolvedUrls.local[0];
}

/** The page under a clock that stands, with every request that it makes written down. */
async function opened(t, url) {
  const chromium = await launch();
  t.after(() => chromium.close());
  const page = await chromium.newPage();
  page.setDefaultTimeout(patience);
  await page.addInitScript(() => {
    globalThis.sent = [];
    const { fetch } = globalThis;
    globalThis.fetch = (...args) => {
      const answer = fetch(...args);
      globalThis.sent.push(answer);
      return answer;
    };
  });
  await page.clock.install({ time: started });
  await page.clock.pauseAt(started + 1_000);
  await page.goto(url);
  return page;
}

/** What the page has shown, once everything that it sent was answered. */
async function shown(page) {
  await page.evaluate(() => Promise.allSettled(globalThis.sent));
  return page.locator("li").allTextContents();
}

/** Lets a quarter of a second pass, in the page and on the server. */
async function pass(page) {
  mock.timers.tick(250);
  await page.clock.runFor(250);
}

test("vite-page: throttled, none of twenty requests is refused; not throttled, most are", async (t) => {
  const page = await opened(t, await previewed(t));
  const refused = [];
  page.on("response", (response) => response.status() === 429 && refused.push(response.url()));

  await page.click("#throttled");
  assert.deepEqual(await shown(page), Array(5).fill("200"), "what the bucket holds goes at once");
  for (let waited = 0; waited < 100 && (await shown(page)).length < 20; waited += 1) await pass(page);
  assert.deepEqual(await shown(page), Array(20).fill("200"));
  assert.deepEqual(refused, []);

  await page.click("#plain");
  const plain = (await shown(page)).slice(20);
  assert.equal(plain.length, 20);
  assert.ok(plain.filter((status) => status === "429").length >= 15, plain.join());
});
