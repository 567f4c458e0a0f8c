import { chromium } from "playwright-core";
import { browser } from "../../../scripts/setup/browser.mjs";

/** The Chromium that set-up found. */
export const launch = () => chromium.launch({ executablePath: browser.check().browser });

/** A page that keeps what it complains of. */
export async function openPage(context, url) {
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(url);
  return { page, complaints };
}

/** The playground, drawn once. */
export async function openPlayground(context, url) {
  const opened = await openPage(context, url);
  await opened.page.waitForFunction(() => globalThis.playground?.marks.large);
  return opened;
}
