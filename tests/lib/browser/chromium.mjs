import { chromium } from "playwright-core";
import { browser } from "../../../scripts/setup/browser.mjs";
import { firstPause } from "../../../www/parts/press.js";

/** How long a browser or a page may take on a busy machine, in milliseconds. */
const patience = 180_000;

/** The Chromium that set-up found. */
export const launch = () => chromium.launch({ executablePath: browser.check().browser, timeout: patience });

/** A page that keeps what it complains of. */
export async function openPage(context, url, prepare = () => {}) {
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  await prepare(page);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(url);
  return { page, complaints };
}

/** In the page: buttons repeat only where a test says so. A press may take as long as a hold on a busy machine. */
function holdNothing(firstPause) {
  const { setTimeout } = globalThis;
  globalThis.isHolding = false;
  globalThis.setTimeout = (work, wait, ...args) =>
    wait === firstPause && !globalThis.isHolding ? undefined : setTimeout(work, wait, ...args);
}

/** The playground, drawn once. */
export async function openPlayground(context, url) {
  const opened = await openPage(context, url, (page) => page.addInitScript(holdNothing, firstPause));
  await opened.page.waitForFunction(() => globalThis.playground?.marks.large);
  return opened;
}
