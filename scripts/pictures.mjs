import { launch, openPlayground } from "../tests/lib/browser/chromium.mjs";
import { serveSite } from "../tests/lib/browser/site.mjs";
import { build } from "./build.mjs";
import { inProject } from "./lib/paths.mjs";
import { say } from "./lib/say.mjs";
import { afterSetUp, toTest } from "./setup.mjs";

/** From the top of the page, as it opens, to the end of this part. */
const last = ".bench";
const [width, margin] = [1120, 16];

async function take(chromium, url, colorScheme) {
  const context = await chromium.newContext({
    viewport: { width, height: 900 },
    colorScheme,
    reducedMotion: "reduce",
  });
  const { page } = await openPlayground(context, url);
  const path = `docs/playground-${colorScheme}.png`;
  const { y, height } = await page.locator(last).boundingBox();
  const clip = { x: 0, y: 0, width, height: y + height + margin };
  await page.screenshot({ path: inProject(path), fullPage: true, clip });
  await context.close();
  say(path);
}

await afterSetUp(toTest, async (found) => {
  await build(found);
  const [chromium, site] = await Promise.all([launch(), serveSite()]);
  try {
    for (const colorScheme of ["light", "dark"]) await take(chromium, site.url, colorScheme);
  } finally {
    await chromium.close();
    site.close();
  }
});
