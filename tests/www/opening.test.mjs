// The page opens on what it is about: an edge burst that a fixed window lets through twice, and a sliding window does not.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import test, { describe } from "node:test";
import { inProject } from "../../scripts/lib/paths.mjs";
import { pageFiles } from "../../scripts/page.mjs";
import { launch, openPlayground } from "../lib/browser/chromium.mjs";
import { drawn, playingIn, simulations, stateOf } from "../lib/browser/playing.mjs";
import { serveSite } from "../lib/browser/site.mjs";
import { after, before } from "../lib/hooks.mjs";

let chromium;
let site;
let context;
let playing;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
  context = await chromium.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
  playing = playingIn(context, site);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

/** What a close-up says, whether it is marked as over the limit, and how many pixels of its bracket are in that colour. */
const closeup = (page, name) =>
  page.evaluate((name) => {
    const item = document.querySelector(`[data-closeup="${name}"]`);
    const canvas = item.querySelector("canvas");
    const top = Math.round((30 * canvas.height) / canvas.clientHeight);
    // A copy: Chromium warns of a canvas that is read more than once.
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, top, canvas.width, 1);
    let red = 0;
    for (let at = 0; at < data.length; at += 4)
      if (data[at + 3] > 150 && data[at] > 2 * data[at + 2]) red += 1;
    return {
      label: canvas.getAttribute("aria-label"),
      counts: [...item.querySelectorAll(".counts span")].map(({ textContent }) => textContent),
      isOver: item.dataset.over === "true",
      isRed: red > canvas.width / 2,
    };
  }, name);

const marksOf = async (page, name) => (await page.evaluate(() => globalThis.playground.marks))[name];
const overLimit = {
  label: "Fixed window: limit 10, 20 got through in a second.",
  counts: ["20 allowed", "0 denied"],
  isOver: true,
  isRed: true,
};
const exact = {
  label: "Sliding window: limit 10, 10 got through in a second.",
  counts: ["10 allowed", "10 denied"],
  isOver: false,
  isRed: false,
};

describe("the edge burst", () => {
  test("is annotated under a fixed window, and a sliding window beside it denies half", () =>
    playing("", async (page) => {
      assert.deepEqual(await closeup(page, "subject"), overLimit);
      assert.deepEqual(await closeup(page, "exact"), exact);
      const [fixed, sliding] = [await marksOf(page, "subject"), await marksOf(page, "exact")];
      assert.deepEqual(
        fixed.map(({ at }) => at),
        sliding.map(({ at }) => at),
      );
      assert.equal(fixed.length, 20);
      assert.ok(fixed.at(-1).at - fixed[0].at < 1_000);
      const { fix_window: all } = await simulations(page);
      assert.deepEqual(
        fixed.map(({ at, allowed }) => ({ at, allowed })),
        all.hits.slice(-20).map(({ at, allowed }) => ({ at, allowed })),
      );
    }));

  test("is side by side in the first screen", () =>
    playing("", async (page) => {
      const [one, other] = await Promise.all(
        ["subject", "exact"].map((name) => page.locator(`[data-closeup="${name}"]`).boundingBox()),
      );
      assert.equal(one.y, other.y);
      assert.ok(one.x + one.width < other.x);
      assert.ok(one.y + one.height < 900);
      assert.ok(await page.locator("#copy-link").isVisible());
    }));

  test("follows the numbers of the visitor", () =>
    playing("#limit=20&scale=5000&at=20000", async (page) => {
      assert.equal((await closeup(page, "subject")).label, "Fixed window: limit 20, 20 got through in 5 s.");
      assert.equal((await closeup(page, "subject")).isOver, false);
    }));

  test("gives way to the chosen algorithm; a sliding window is compared with the fixed one", () =>
    playing("#algorithm=leaky_bucket&at=3600", async (page) => {
      assert.match((await closeup(page, "subject")).label, /^Leaky bucket: capacity 10, /);
      await page.check("#algorithm-sliding_window", { force: true });
      await drawn(page);
      assert.deepEqual(await closeup(page, "subject"), overLimit);
      assert.deepEqual(await closeup(page, "exact"), exact);
    }));

  test("is not annotated before the first hit", () =>
    playing("#traffic=none&at=0", async (page) => {
      assert.equal(
        (await closeup(page, "subject")).label,
        "Fixed window: limit 10, 0 got through in a second.",
      );
      assert.deepEqual(await marksOf(page, "subject"), []);
    }));
});

describe("a bucket's burst", () => {
  for (const id of ["token_bucket", "leaky_bucket"]) {
    test(`is not painted as a violation: ${id}`, () =>
      playing(`#algorithm=${id}&at=3600`, async (page) => {
        const { [id]: bucket, fix_window: fixed } = await simulations(page);
        assert.ok(bucket.busiest.count > bucket.limit, "there is a burst to paint");
        assert.deepEqual([bucket.isOver, fixed.isOver], [false, true]);
        const { isOver, isRed } = await closeup(page, "subject");
        assert.deepEqual({ isOver, isRed }, { isOver: false, isRed: false });
        const marked = (id) => page.locator(`[data-algorithm="${id}"] .busiest`).getAttribute("data-over");
        assert.deepEqual([await marked(id), await marked("fix_window")], ["false", "true"]);
      }));
  }
});

test("Copy link copies the state as it is now", async () => {
  const own = await chromium.newContext({
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const { page } = await openPlayground(own, site.url);
  await page.fill('[data-field="limit"] input[type="number"]', "12");
  await page.click("#copy-link");
  await page.waitForFunction(() => document.getElementById("copy-link").textContent === "Copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  const state = await stateOf(page);
  assert.equal(state.limit, 12);
  await own.close();
  await playing(new URL(copied).hash, async (page) => assert.deepEqual(await stateOf(page), state));
});

test("a link to a place in the page keeps the state", () =>
  playing("#limit=7&at=3600", async (page) => {
    const state = await stateOf(page);
    await page.focus(".skip");
    await page.keyboard.press("Enter");
    await drawn(page);
    assert.deepEqual(await stateOf(page), state);
  }));

describe("the links to the project", () => {
  /** The links of a page that was built for a repository. */
  async function linksFor(home) {
    const files = await pageFiles(home);
    const script = Buffer.from(files.find(({ path }) => basename(path) === "page.js").contents);
    const built = await serveSite({
      "/page.js": (_, response) => response.writeHead(200, { "Content-Type": "text/javascript" }).end(script),
    });
    const { page } = await openPlayground(context, built.url);
    const links = await page.$$eval("a:not(.skip)", (all) =>
      all.filter((each) => each.checkVisibility()).map(({ textContent, href }) => [textContent, href]),
    );
    await page.close();
    built.close();
    return links;
  }

  test("are in its repository, and lead to what is there", async () => {
    const home = "https://code.example/tollgate";
    const links = await linksFor(home);
    assert.deepEqual(links, [
      ["Repository", home],
      ["Guides", `${home}/blob/HEAD/docs/README.md`],
      ["Install", `${home}#install`],
      [
        "Deploy to Cloudflare",
        "https://deploy.workers.cloudflare.com/?url=https%3A%2F%2Fcode.example%2Ftollgate%2Ftree%2Fmain%2Fexamples%2Fhono-worker",
      ],
    ]);
    assert.match(
      readFileSync(inProject("examples/hono-worker/wrangler.toml"), "utf8"),
      /^main = "worker\.ts"$/m,
    );
    assert.match(readFileSync(inProject("docs/README.md"), "utf8"), /^# Guides$/m);
    assert.match(readFileSync(inProject("README.md"), "utf8"), /^## Install$/m);
  });

  test("are left out while it has no address", async () => assert.deepEqual(await linksFor(null), []));
});

test("the theme's button says what it will do", async () => {
  const own = await chromium.newContext({ colorScheme: "dark", reducedMotion: "reduce" });
  const { page } = await openPlayground(own, site.url);
  const seen = async () => [
    await page.evaluate(() => document.documentElement.dataset.theme),
    await page.textContent("#theme"),
  ];
  assert.deepEqual(await seen(), ["dark", "Switch to light"]);
  await page.click("#theme");
  assert.deepEqual(await seen(), ["light", "Switch to dark"]);
  // A button that names its action has no state of its own.
  assert.equal(await page.getAttribute("#theme", "aria-pressed"), null);
  await own.close();
});
