import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { chromium } from "playwright-core";
import { browser } from "../../../scripts/setup/browser.mjs";

const types = { ".html": "text/html", ".js": "text/javascript" };

/** The Chromium that set-up found. */
export const launch = () => chromium.launch({ executablePath: browser.check().browser, timeout: patience });

/** How long a browser or a page may take on a busy machine, in milliseconds. */
export const patience = 180_000;

/** Serves a folder, opens its page, and answers what the page left in `globalThis.outcome`. */
export async function outcomeOf(chromium, folder, headers = {}) {
  const server = await serve(folder, headers);
  const page = await chromium.newPage();
  page.setDefaultTimeout(patience);
  try {
    const errors = [];
    page.on("pageerror", (error) => errors.push(error));
    await page.goto(`http://localhost:${server.address().port}/index.html`);
    if (errors.length > 0) throw errors[0];
    return await page.evaluate(() => globalThis.outcome);
  } finally {
    await page.close();
    server.close();
  }
}

async function serve(folder, headers) {
  const server = createServer((request, response) => {
    try {
      const path = new URL(request.url, "http://localhost").pathname;
      const body = readFileSync(join(folder, path));
      response.writeHead(200, { "Content-Type": types[extname(path)] ?? "text/plain", ...headers }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "localhost", resolve));
  return server;
}
