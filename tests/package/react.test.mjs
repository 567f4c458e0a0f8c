// The hooks of tollgate/react in a real app, as Vite builds it from the tarball, with React 18 and 19: strict mode,
// unmounting, countdowns under the page's clock, and rendering on a server.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import test from "node:test";
import { build } from "vite";
import { inProject } from "../../scripts/lib/paths.mjs";
import { keepConnections } from "../lib/browser/connections.mjs";
import { after, before } from "../lib/hooks.mjs";
import { launch, patience } from "./lib/page.mjs";
import { freshFixture, run } from "./lib/project.mjs";

const started = 1_767_225_600_000;
const folders = { 18: inProject("tests/react/react-18/node_modules"), 19: inProject("node_modules") };
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript" };

let chromium;
let project;
before(async () => {
  chromium = await launch();
  project = await freshFixture("react");
});
after(() => chromium?.close());

/** How Vite builds the app with a version of React. In development mode, in which strict mode does its part. */
const withReact = (version, options) => ({
  root: project,
  configFile: false,
  // A warning about "use client" is of no use to a page.
  logLevel: "error",
  mode: "development",
  define: { "process.env.NODE_ENV": '"development"' },
  resolve: {
    alias: ["react-dom", "react", "scheduler"].map((name) => ({
      find: new RegExp(`^${name}(?=/|$)`),
      replacement: join(folders[version], name),
    })),
  },
  ...options,
});

/** Renders the app on a server: a process without a window. */
async function rendered(version, sources = []) {
  const outDir = `server-${version}`;
  const ssr = { noExternal: true };
  await build(withReact(version, { ssr, build: { ssr: "server.jsx", outDir, minify: false } }));
  const env = { ...process.env, SOURCES: JSON.stringify(sources) };
  return JSON.parse(await run(process.execPath, [join(project, outDir, "server.js")], { env }));
}

/** Serves a build, and `/hang`, which never answers but notes who has gone. */
async function served(t, folder) {
  const hung = { count: 0, gone: 0 };
  const server = createServer((request, response) => {
    if (request.url === "/hang") {
      hung.count += 1;
      request.on("close", () => (hung.gone += 1));
      return;
    }
    const path = request.url === "/" ? "/index.html" : request.url;
    response.writeHead(200, { "Content-Type": types[extname(path)] }).end(readFileSync(join(folder, path)));
  });
  await new Promise((resolve) => server.listen(0, "localhost", resolve));
  t.after(() => server.close() && server.closeAllConnections());
  return { url: `http://localhost:${server.address().port}/`, hung };
}

/** The app in a page whose clock stands still. */
async function opened(t, url) {
  const page = await chromium.newPage();
  t.after(() => page.close());
  page.setDefaultTimeout(patience);
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.clock.install({ time: started });
  await page.clock.pauseAt(started + 1_000);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.seen?.throttle);
  const shows = (id, text) =>
    page.waitForFunction(
      ({ id, text }) => document.querySelector(id)?.textContent === text,
      { id, text },
      { polling: 20 },
    );
  const ended = async (count) => {
    await page.waitForFunction((count) => seen.ended.length >= count, count, { polling: 20 });
    return page.evaluate(() => seen.ended);
  };
  return { page, complaints, shows, ended };
}

for (const version of [18, 19]) {
  test(`React ${version}`, async (t) => {
    const outDir = `dist-${version}`;
    await build(withReact(version, { build: { outDir, minify: false } }));
    const folder = join(project, outDir);

    await t.test("strict mode: one throttle, which works after the second mount", async (t) => {
      const { page, complaints, ended } = await opened(t, (await served(t, folder)).url);
      assert.match(await page.evaluate(() => version), new RegExp(`^${version}\\.`));
      assert.deepEqual(await page.evaluate(() => [seen.mounts, seen.throttles.size]), [2, 1]);
      await page.evaluate(() => {
        note("first", seen.throttle.acquire());
      });
      assert.deepEqual(await ended(1), ["first ok"]);
      assert.deepEqual(complaints, []);
    });

    await t.test("the queue is shown, and its wait counts down each second", async (t) => {
      const { page, complaints, shows, ended } = await opened(t, (await served(t, folder)).url);
      await shows("#queue", "0 0 0");
      await page.evaluate(() => {
        seen.throttle.hold("", 2_500);
        for (const name of "abc") note(name, seen.throttle.acquire());
      });
      await shows("#queue", "3 3 4500");
      await page.clock.runFor(499);
      await shows("#queue", "3 3 4500");
      await page.clock.runFor(1);
      await shows("#queue", "3 3 4000");
      await page.clock.runFor(1_000);
      await shows("#queue", "3 3 3000");
      await page.clock.runFor(1_000);
      await shows("#queue", "2 2 2000");
      await page.clock.runFor(2_000);
      await shows("#queue", "0 0 0");
      assert.deepEqual(await ended(3), ["a ok", "b ok", "c ok"]);
      assert.deepEqual(complaints, []);
    });

    await t.test("unmounted, calls that wait and requests under way are aborted", async (t) => {
      const { url, hung } = await served(t, folder);
      const { page, complaints, ended } = await opened(t, url);
      await page.evaluate(() => {
        note("request", seen.throttle.fetch("/hang"));
        note("waiting request", seen.throttle.fetch("/hang"));
        note("call", seen.throttle.wrap(() => {}, { edge: "debounce", wait: 300 })());
      });
      while (hung.count === 0) await page.evaluate(() => document.title);
      await page.evaluate(() => seen.setShown(false));
      assert.deepEqual((await ended(3)).toSorted(), [
        "call AbortError",
        "request AbortError",
        "waiting request AbortError",
      ]);
      while (hung.gone === 0) await page.evaluate(() => document.title);
      assert.equal(hung.count, 1);
      assert.equal(await page.evaluate(() => seen.throttle.pending), 0);
      // Another mount is another life.
      await page.evaluate(() => {
        seen.throttles.clear();
        seen.former = seen.throttle;
        seen.setShown(true);
      });
      await page.waitForFunction(() => seen.throttles.size === 1, undefined, { polling: 20 });
      assert.equal(await page.evaluate(() => seen.throttle === seen.former), false);
      assert.deepEqual(complaints, []);
    });

    await t.test("unmounted, a shared budget soon holds no connection", async (t) => {
      const { page, complaints } = await opened(t, (await served(t, folder)).url);
      await page.evaluate(keepConnections);
      const calls = () => page.evaluate(() => seen.ended.filter((end) => end === "shared ok").length);
      for (let mount = 1; mount <= 5; mount += 1) {
        await page.evaluate((mount) => seen.setShared(mount), mount);
        while ((await calls()) < mount) await page.clock.runFor(1);
      }
      await page.evaluate(() => seen.setShared(0));
      assert.equal(await page.evaluate(() => connections.size), 5);
      await page.clock.runFor(11_000);
      assert.equal(await page.evaluate(() => connections.size), 0);
      assert.deepEqual(complaints, []);
    });

    await t.test("a limit counts down, by headers and by a decision, and starts anew", async (t) => {
      const { page, complaints, shows } = await opened(t, (await served(t, folder)).url);
      const set = (source) => page.evaluate((source) => seen.setSource(source), source);
      await shows("#limit", "false 0 30000");
      await page.clock.runFor(1_000);
      await shows("#limit", "false 0 29000");
      await page.clock.runFor(29_000);
      await shows("#limit", "true undefined 0");
      await set({ allowed: false, remaining: 2, retryAfter: 1_500 });
      await shows("#limit", "false 2 1500");
      await page.clock.runFor(500);
      await shows("#limit", "false 2 1000");
      // Another denial of the same length.
      await set({ allowed: false, remaining: 2, retryAfter: 1_500 });
      await shows("#limit", "false 2 1500");
      await page.clock.runFor(1_500);
      await shows("#limit", "true undefined 0");
      await set({ allowed: true, remaining: 7, retryAfter: 0 });
      await shows("#limit", "true 7 0");
      await set({ "Retry-After": "2", RateLimit: '"a";r=5;t=9, "b";r=3;t=9' });
      await shows("#limit", "false 3 2000");
      await page.evaluate(() => seen.setSource(new Headers({ RateLimit: '"a";r=5;t=9' })));
      await shows("#limit", "true 5 0");
      await set(null);
      await shows("#limit", "true undefined 0");
      // One that never fits does not count, nor keep the page busy.
      await page.evaluate(() => seen.setSource({ allowed: false, remaining: 1, retryAfter: Infinity }));
      await shows("#limit", "false 1 Infinity");
      assert.deepEqual(complaints, []);
    });

    await t.test("rendered on a server, and taken over by the page without a difference", async (t) => {
      const { html, window, version: used } = await rendered(version);
      assert.equal(window, "undefined");
      assert.match(used, new RegExp(`^${version}\\.`));
      assert.match(html, /<p id="queue">0 0 0<\/p><p id="limit">false 0 30000<\/p>/);
      const index = join(folder, "index.html");
      const empty = readFileSync(index, "utf8");
      writeFileSync(index, empty.replace('<div id="root"></div>', `<div id="root">${html}</div>`));
      t.after(() => writeFileSync(index, empty));
      const { page, complaints, shows } = await opened(t, (await served(t, folder)).url);
      await page.clock.runFor(1_000);
      await shows("#limit", "false 0 29000");
      assert.deepEqual(complaints, []);
    });

    await t.test(
      "a date is taken over without a difference, though the server's clock is another",
      async (t) => {
        const at = (time) => new Date(time).toUTCString();
        const date = { "Retry-After": at(started + 31_000) };
        // By the date of the response, it is 20 s away, whatever clock the page has.
        const byServer = { "Retry-After": at(started - 40_000), Date: at(started - 60_000) };
        const { dated } = await rendered(version, [date, byServer]);
        assert.match(dated[0], /<p id="limit">false undefined 1000<\/p>/);
        assert.match(dated[1], /<p id="limit">false undefined 20000<\/p>/);
        const index = join(folder, "index.html");
        const empty = readFileSync(index, "utf8");
        t.after(() => writeFileSync(index, empty));
        for (const [source, html, left] of [
          [date, dated[0], 29_000],
          [byServer, dated[1], 19_000],
        ]) {
          const root = `<div id="root" data-source='${JSON.stringify(source)}'>${html}</div>`;
          writeFileSync(index, empty.replace('<div id="root"></div>', root));
          const { page, complaints, shows } = await opened(t, (await served(t, folder)).url);
          await page.clock.runFor(1_000);
          await shows("#limit", `false undefined ${left}`);
          assert.deepEqual(complaints, []);
        }
      },
    );
  });
}
