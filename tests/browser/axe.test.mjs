import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import test, { after, before } from "node:test";
import { launch, openPlayground } from "./lib/chromium.mjs";
import { serveSite } from "./lib/site.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

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
  "#at=18000",
  "#algorithm=token_bucket&traffic=log&at=4000",
  `#algorithm=sliding_window&traffic=steady&pace=1&${reserved}&at=15000`,
  `#algorithm=concurrency&traffic=steady&pace=1&${reserved}&at=15000`,
];

for (const colorScheme of ["light", "dark"]) {
  for (const [name, viewport] of Object.entries(widths)) {
    for (const link of links) {
      test(`${colorScheme}, ${name}, ${link}`, async () => {
        const context = await chromium.newContext({ colorScheme, viewport, reducedMotion: "reduce" });
        const { page, complaints } = await openPlayground(context, `${site.url}/${link}`);
        await page.click("#table summary");
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        assert.deepEqual(
          violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]),
          [],
        );
        const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.equal(sideways, 0);
        assert.deepEqual(complaints, []);
        await context.close();
      });
    }
  }
}
