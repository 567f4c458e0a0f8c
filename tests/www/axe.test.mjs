// axe finds nothing to object to in the playground, light and dark, wide and narrow, folded and not, under its own policy.

import assert from "node:assert/strict";
import test from "node:test";
import { keepRefused, objections } from "../lib/browser/axe.mjs";
import { launch, openPlayground } from "../lib/browser/chromium.mjs";
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

const widths = { wide: { width: 1280, height: 900 }, narrow: { width: 390, height: 844 } };
/** One of each: settled, expired, given back, denied, and open. */
const reserved = "mine=3uwR5-3uw.15oS0-2.15oR3-1jk.2pgG3.dwR4-7ps.15oR9-rs";
const links = [
  "",
  "#algorithm=token_bucket&traffic=log&at=4000",
  `#algorithm=sliding_window&scale=5000&traffic=steady&pace=1&${reserved}&at=15000`,
  `#algorithm=concurrency&run=2000&traffic=steady&pace=1&${reserved}&at=15000`,
];

for (const colorScheme of ["light", "dark"]) {
  for (const [name, viewport] of Object.entries(widths)) {
    for (const link of links) {
      test(`${colorScheme}, ${name}, ${link || "as it opens"}`, async () => {
        const context = await chromium.newContext({ colorScheme, viewport, reducedMotion: "reduce" });
        await context.addInitScript(keepRefused);
        const { page, complaints } = await openPlayground(context, `${site.url}/${link}`);
        if (name === "narrow") assert.deepEqual(await objections(page), [0], "folded");
        await page.$$eval("details", (all) => {
          for (const each of all) each.open = true;
        });
        assert.deepEqual(await objections(page), [0]);
        assert.deepEqual(await page.evaluate(() => globalThis.refused), []);
        assert.deepEqual(complaints, []);
        await context.close();
      });
    }
  }
}

test("the policy is in force: an inline script is blocked", async () => {
  const context = await chromium.newContext();
  await context.addInitScript(keepRefused);
  const { page } = await openPlayground(context, site.url);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.head.append(script);
  });
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  assert.deepEqual(await page.evaluate(() => globalThis.refused), ["script-src-elem inline"]);
  await context.close();
});
