import { launch, openPlayground } from "../tests/browser/lib/chromium.mjs";
import { serveSite } from "../tests/browser/lib/site.mjs";
import { build } from "./build.mjs";
import { inProject } from "./lib/paths.mjs";
import { say } from "./lib/say.mjs";
import { afterSetUp, toTest } from "./setup.mjs";

/**
 * Bursts around the windows' edges, at a time when the algorithms decide differently. The visitor has made a
 * reservation of 4 of which 1 was used, and one of 4 that is open.
 */
const moment = "#algorithm=token_bucket&mine=668R4-3uw.15oS0-1.15oR4-7ps&at=17000";
const [width, margin] = [1120, 16];

async function take(chromium, url, colorScheme) {
  const context = await chromium.newContext({
    viewport: { width, height: 900 },
    colorScheme,
    reducedMotion: "reduce",
  });
  const { page } = await openPlayground(context, `${url}/${moment}`);
  const path = `docs/playground-${colorScheme}.png`;
  const [top, bottom] = await Promise.all(
    [".bench", "#strips"].map((part) => page.locator(part).boundingBox()),
  );
  const clip = { x: 0, y: top.y - margin, width, height: bottom.y + bottom.height - top.y + 2 * margin };
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
