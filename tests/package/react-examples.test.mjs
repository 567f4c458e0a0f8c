// The examples with React, as Vite builds and previews them from the tarball, in Chromium. Their clocks move by hand.

import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { build, preview } from "vite";
import { after, before } from "../lib/hooks.mjs";
import { launch, patience } from "./lib/page.mjs";
import { freshExamples } from "./lib/project.mjs";

const started = 1_767_225_600_000;
const quiet = { logLevel: "warn" };

let chromium;
let examples;
before(async () => {
  chromium = await launch();
  examples = await freshExamples("react-examples");
});
after(() => chromium?.close());

/** An example in a page: its clock and that of its server stand still. */
async function opened(t, example) {
  const root = examples(example);
  await build({ ...quiet, root });
  mock.timers.enable({ apis: ["Date"], now: started });
  t.after(() => mock.timers.reset());
  const server = await preview({ ...quiet, root, preview: { port: 0, strictPort: false } });
  t.after(() => server.close());
  const page = await chromium.newPage();
  t.after(() => page.close());
  page.setDefaultTimeout(patience);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.clock.install({ time: started });
  await page.clock.pauseAt(started + 1_000);
  await page.goto(server.resolvedUrls.local[0]);
  const pass = async (milliseconds) => {
    mock.timers.tick(milliseconds);
    await page.clock.runFor(milliseconds);
  };
  /** When an element has a text. */
  const shows = (selector, text) =>
    page.waitForFunction(
      ({ selector, text }) =>
        [...document.querySelectorAll(selector)].map(({ textContent }) => textContent).join("; ") === text,
      { selector, text },
      { polling: 20 },
    );
  return { page, pass, shows, complaints };
}

test("react-search asks once when the user stops typing, and counts down when it was denied", async (t) => {
  const { page, pass, shows, complaints } = await opened(t, "react-search");
  const asked = [];
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === "/search") asked.push(searchParams.get("q"));
  });
  await page.locator("#search").pressSequentially("bucket");
  await pass(299);
  assert.deepEqual(asked, []);
  await pass(1);
  await shows("li", "bucket; leaky bucket; token bucket");
  await shows("[role=status]", "2 searches left");

  await page.locator("#search").fill("window");
  await pass(300);
  await shows("li", "fixed window; sliding window");
  // Two at once, then one a second: this one waits for its turn.
  await page.locator("#search").fill("leak");
  await pass(300);
  await shows("[role=status]", "1 searches left");
  assert.deepEqual(asked, ["bucket", "window"]);
  await pass(400);
  await shows("li", "leaky bucket");
  // The API allows three in ten seconds. After the third it has none left until the first, of a second ago, has ended.
  await shows("[role=status]", "Wait 9 s");
  await pass(1_000);
  await shows("[role=status]", "Wait 8 s");
  await page.locator("#search").fill("token");
  await pass(300);
  await page.waitForFunction(
    () => document.querySelector("[role=status]").textContent === "Wait 8 s",
    undefined,
    {
      polling: 20,
    },
  );
  assert.deepEqual(asked, ["bucket", "window", "leak", "token"]);
  await pass(9_000);
  await shows("[role=status]", "");
  assert.deepEqual(complaints, []);
});

test("react-upload shows positions, waits and progress, and cancels what waits and what is sent", async (t) => {
  const { page, pass, shows, complaints } = await opened(t, "react-upload");
  // The first is left open, so that it can be cancelled on the way.
  let held;
  await page.route("**/upload", (route) => {
    if (held === undefined) held = route;
    else route.continue();
  });
  const files = Array.from({ length: 9 }, (_, number) => ({
    name: `${number + 1}.txt`,
    mimeType: "text/plain",
    buffer: Buffer.alloc(1_000),
  }));
  await page.locator("input").setInputFiles(files);
  await shows(
    "li > :nth-child(2)",
    `; done; ${[1, 2, 3, 4, 5, 6, 7].map((at) => `position ${at}, about ${2 * at} s`).join("; ")}`,
  );
  await shows("[role=status]", "7 waiting, the last for about 14 s");
  assert.equal(await page.locator("progress").getAttribute("aria-label"), "Upload of 1.txt");
  await page.locator("li").first().getByRole("button").click();
  await shows("li:first-child > span", "1.txt; cancelled");

  // The fourth leaves the line, and those behind it move up.
  await page.locator("li").nth(3).getByRole("button").click();
  await shows("li:nth-child(5) > span", "5.txt; position 2, about 4 s");
  await shows("[role=status]", "6 waiting, the last for about 12 s");
  await pass(1_000);
  await shows("[role=status]", "6 waiting, the last for about 11 s");
  await pass(1_000);
  await shows("li:nth-child(5) > span", "5.txt; position 1, about 2 s");
  for (let turn = 0; turn < 5; turn += 1) await pass(2_000);
  await shows("[role=status]", "");
  await page.waitForFunction(
    () =>
      [...document.querySelectorAll("li")].filter((item) => item.textContent.endsWith("done")).length === 7,
    undefined,
    { polling: 20 },
  );
  assert.deepEqual(complaints, []);
});
