import assert from "node:assert/strict";
import { openPlayground } from "./chromium.mjs";

/** Returns a function that opens a link, does something there, and asserts that the page did not complain. */
export const playingIn = (context, site) => async (hash, work) => {
  const { page, complaints } = await openPlayground(context, `${site.url}/${hash}`);
  try {
    return await work(page);
  } finally {
    await page.close();
    assert.deepEqual(complaints, []);
  }
};

export const simulations = (page) => page.evaluate(() => globalThis.playground.simulations);
export const stateOf = (page) => page.evaluate(() => globalThis.playground.state);

/** After the next frame, what was changed has been drawn. */
export const drawn = (page) =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
