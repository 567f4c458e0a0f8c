// The playground on wide and narrow screens: the picker, the folds, the cards, the sizes of controls, and countable denials.

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { burstsOf } from "../../www/paint/bursts.js";
import { launch, openPlayground } from "../lib/browser/chromium.mjs";
import { drawn, simulations, stateOf } from "../lib/browser/playing.mjs";
import { serveSite } from "../lib/browser/site.mjs";
import { after, before } from "../lib/hooks.mjs";

let chromium;
let site;
before(async () => {
  [chromium, site] = await Promise.all([launch(), serveSite()]);
});
after(async () => {
  await chromium?.close();
  site?.close();
});

/** Opens the page at a width, and asserts that it does not complain. */
async function at(width, work, { hash = "", colorScheme = "light", prepare = () => {} } = {}) {
  const viewport = { width, height: width < 500 ? 844 : 900 };
  const context = await chromium.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  await context.addInitScript(prepare);
  const { page, complaints } = await openPlayground(context, `${site.url}/${hash}`);
  try {
    await work(page);
    assert.deepEqual(complaints, []);
  } finally {
    await context.close();
  }
}

const openAll = (page) =>
  page.$$eval("details", (all) => {
    for (const each of all) each.open = true;
  });

describe("the algorithm is picked", () => {
  test("on a narrow screen from a select above the chart", () =>
    at(390, async (page) => {
      const [select, chart] = await Promise.all(
        ["#algorithm", "#timeline"].map((part) => page.locator(part).boundingBox()),
      );
      assert.ok(select.y + select.height < chart.y);
      assert.ok(!(await page.locator("#algorithms").isVisible()));
      await page.selectOption("#algorithm", "leaky_bucket");
      await drawn(page);
      assert.equal((await stateOf(page)).algorithm, "leaky_bucket");
      assert.match(await page.textContent("#says"), /fills it/);
    }));

  test("on a wide screen from a list", () =>
    at(1280, async (page) => {
      assert.ok(await page.locator("#algorithms").isVisible());
      assert.ok(!(await page.locator("#algorithm").isVisible()));
      await page.check("#algorithm-leaky_bucket", { force: true });
      assert.equal(await page.inputValue("#algorithm"), "leaky_bucket");
    }));
});

describe("the length of the page", () => {
  test("on a narrow screen is four screens, half of what it was", () =>
    at(390, async (page) => {
      const length = () => page.evaluate(() => document.documentElement.scrollHeight);
      const folded = await length();
      assert.ok(folded <= 4 * 844, `${folded} pixels`);
      await openAll(page);
      assert.ok((await length()) > folded + 1_000, "what is folded is there");
    }));

  test("follows the width: sections are open on a wide screen only", () =>
    at(1280, async (page) => {
      const open = () => page.$$eval("details.fold", (all) => all.map((each) => each.open));
      assert.deepEqual(new Set(await open()), new Set([true]));
      await page.setViewportSize({ width: 390, height: 844 });
      await drawn(page);
      assert.deepEqual(new Set(await open()), new Set([false]));
      await page.click("#code-title");
      assert.ok(await page.locator("#code").isVisible());
    }));
});

describe("the cards leave no hole", () => {
  for (const width of [1280, 1120, 800, 390]) {
    for (const count of [7, 8]) {
      test(`${count} at ${width}`, () =>
        at(width, async (page) => {
          const rows = await page.evaluate((count) => {
            const list = document.getElementById("strips");
            while (list.children.length < count) list.append(list.lastElementChild.cloneNode(true));
            while (list.children.length > count) list.lastElementChild.remove();
            const { left, right } = list.getBoundingClientRect();
            const gap = Number.parseFloat(getComputedStyle(list).columnGap);
            const rows = new Map();
            for (const card of list.children) {
              const box = card.getBoundingClientRect();
              rows.set(box.top, [...(rows.get(box.top) ?? []), box]);
            }
            return [...rows.values()].map((boxes) => ({
              wide: boxes.reduce((sum, { width }) => sum + width, 0) + gap * (boxes.length - 1),
              all: right - left,
              bottoms: new Set(boxes.map(({ bottom }) => Math.round(bottom))).size,
            }));
          }, count);
          assert.ok(rows.length > 1);
          for (const { wide, all, bottoms } of rows) {
            assert.ok(Math.abs(wide - all) < 1, `a row of ${wide} in ${all} pixels`);
            assert.equal(bottoms, 1);
          }
        }));
    }
  }
});

/** In the page: every control in view, with its height and its colours. Hidden radio buttons are their labels. */
const controls = (all) =>
  all
    .map((each) => (each.type === "radio" ? document.querySelector(`label[for="${each.id}"]`) : each))
    .filter((each) => each.checkVisibility())
    .map((each) => {
      const { backgroundColor, color, borderTopColor } = getComputedStyle(each);
      const [background, ink] = [backgroundColor, color].map((text) => text.match(/[\d.]+/g).map(Number));
      return {
        what: each.id || each.name || each.textContent.trim() || each.outerHTML.slice(0, 60),
        kind: each.matches("input, select, textarea") && each.type !== "range" ? "box" : each.type,
        height: each.getBoundingClientRect().height,
        background,
        ink,
        borderTopColor,
      };
    });

describe("controls", () => {
  const hash = "#traffic=log&mine=rsR4-rs&at=1200";
  for (const width of [1280, 390]) {
    test(`are at least 24 pixels high at ${width}`, () =>
      at(
        width,
        async (page) => {
          await openAll(page);
          const seen = await page.$$eval("input, select, textarea, button, summary, a:not(.skip)", controls);
          assert.ok(seen.length > 30, `${seen.length} controls`);
          assert.deepEqual(
            seen.filter(({ height }) => height < 24),
            [],
          );
        },
        { hash },
      ));

    test(`of text are boxes in the colours of the theme at ${width}`, async () => {
      const boxes = {};
      for (const colorScheme of ["light", "dark"])
        await at(
          width,
          async (page) => {
            await openAll(page);
            const seen = await page.$$eval("input, select, textarea", controls);
            boxes[colorScheme] = seen.filter(({ kind }) => kind === "box");
            const [rule] = await page.$$eval(".card", ([card]) => [getComputedStyle(card).borderTopColor]);
            for (const { what, borderTopColor } of boxes[colorScheme])
              assert.equal(borderTopColor, rule, what);
          },
          { hash, colorScheme },
        );
      const bright = ([red, green, blue]) => (red + green + blue) / 3;
      assert.ok(boxes.dark.length > 8);
      assert.equal(boxes.dark.length, boxes.light.length);
      for (const { what, background, ink } of boxes.dark) {
        assert.equal(background.length, 3, `${what} has a background of its own`);
        assert.ok(bright(background) < 50 && bright(ink) > 140, what);
      }
      for (const { what, background, ink } of boxes.light)
        assert.ok(bright(background) > 220 && bright(ink) < 120, what);
    });
  }
});

/** In the page: keeps the words that are written on canvases. */
const keepWritten = () => {
  globalThis.written = new Map();
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function write(words, ...place) {
    const kept = globalThis.written;
    kept.set(this.canvas, [...(kept.get(this.canvas) ?? []), String(words)]);
    return fillText.call(this, words, ...place);
  };
};

/** In the page: how many separate marks a canvas has in the colour of denials. */
function denials(canvas) {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const [red, green, blue] = getComputedStyle(document.documentElement)
    .getPropertyValue("--denied")
    .match(/[\da-f]{2}/g)
    .map((hex) => Number.parseInt(hex, 16));
  const isDenied = (at) =>
    data[4 * at + 3] > 90 &&
    Math.abs(data[4 * at] - red) + Math.abs(data[4 * at + 1] - green) + Math.abs(data[4 * at + 2] - blue) <
      60;
  const seen = new Set();
  let found = 0;
  for (let start = 0; start < width * height; start += 1) {
    if (seen.has(start) || !isDenied(start)) continue;
    found += 1;
    const open = [start];
    while (open.length > 0) {
      const at = open.pop();
      if (seen.has(at) || !isDenied(at)) continue;
      seen.add(at);
      for (const step of [-1, 1, -width, width, -width - 1, -width + 1, width - 1, width + 1])
        open.push(at + step);
    }
  }
  return found;
}

describe("the denials of a burst can be counted", () => {
  for (const width of [1280, 390]) {
    test(`as crosses that do not touch, at ${width}`, () =>
      at(width, async (page) => {
        await page.evaluate(() => globalThis.playground.marks);
        const { hits } = (await simulations(page)).sliding_window;
        const wanted = hits.filter(({ allowed }) => !allowed).length;
        assert.equal(wanted, 20);
        const strip = page.locator('[data-algorithm="sliding_window"] canvas');
        assert.equal(await strip.evaluate(denials), wanted);
        const closeup = page.locator('[data-closeup="exact"] canvas');
        assert.equal(await closeup.evaluate(denials), 10);
      }));

    test(`by a number where crosses would touch, at ${width}`, () =>
      at(
        width,
        async (page) => {
          await page.evaluate(() => {
            globalThis.written.clear();
            return globalThis.playground.marks.large.length;
          });
          const written = (part) =>
            page.locator(part).evaluate((canvas) => globalThis.written.get(canvas) ?? []);
          const { hits } = (await simulations(page)).sliding_window;
          assert.equal(hits.filter(({ allowed }) => !allowed).length, 180);
          const strip = await written('[data-algorithm="sliding_window"] canvas');
          assert.deepEqual(strip.slice(0, 2), ["90", "90"]);
        },
        { hash: "#algorithm=sliding_window&size=50&at=3600", prepare: keepWritten },
      ));
  }

  test("in as few rows as they need", () => {
    const spaced = (step) => Array.from({ length: 12 }, (_, index) => index * step);
    const seen = (step) =>
      burstsOf(spaced(step), 2, 3).map(({ count, rows, isCrowded }) => [count, rows, isCrowded]);
    assert.deepEqual(seen(6), Array(12).fill([1, 1, false]));
    assert.deepEqual(seen(3), [[12, 2, false]]);
    assert.deepEqual(seen(2), [[12, 3, false]]);
    assert.deepEqual(seen(1), [[12, 4, true]]);
    assert.deepEqual(burstsOf([], 2, 3), []);
    const apart = burstsOf([0, 1, 2, 3, 50], 2, 3);
    assert.deepEqual(
      apart.map(({ first, count, left, right }) => [first, count, left, right]),
      [
        [0, 4, 0, 3],
        [4, 1, 50, 50],
      ],
    );
  });
});
