// `tollgate/throttle` from the tarball waits its turns exactly: in Node and browsers, and where WebAssembly is forbidden.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { build } from "vite";
import { after, before } from "../lib/hooks.mjs";
import { launch, outcomeOf } from "./lib/page.mjs";
import { freshFixture, run } from "./lib/project.mjs";

let project;
let chromium;
before(async () => {
  project = await freshFixture("throttle");
  chromium = await launch();
});
after(() => chromium?.close());

const second = { policy: "second", limit: 2 };
const expected = {
  first: {
    allowed: true,
    count: 1,
    remaining: 1,
    retryAfter: 0,
    resetAfter: 2_000,
    moreAfter: 1_000,
    violated: [],
    ...second,
  },
  turns: [
    [0, 0, "second", 0],
    [1, 1_000, "bucket", 0],
    [2, 4_000, "second", 0],
  ],
  places: [
    [1, 1, 1_000],
    [2, 2, 4_000],
    [2, 1, 3_000],
  ],
  error: [true, "invalid_cost", "cost: 4 can never fit; the policy takes 2 at the most"],
};

const reported = async (...args) => JSON.parse(await run(process.execPath, args, { cwd: project }));

test("Node, ES modules", async () => assert.deepEqual(await reported("main.mjs"), expected));

test("Node, CommonJS", async () => assert.deepEqual(await reported("main.cjs"), expected));

test("Node without WebAssembly", async (t) => {
  await t.test("ES modules", async () => assert.deepEqual(await reported("--jitless", "main.mjs"), expected));
  await t.test("CommonJS", async () => assert.deepEqual(await reported("--jitless", "main.cjs"), expected));
  await t.test("tollgate/js", async () => {
    const { running, ...throttled } = await reported("--jitless", "whole.mjs");
    assert.deepEqual(throttled, expected);
    assert.deepEqual(running, [true, false, "settled"]);
  });
});

test("Vite", async (t) => {
  await build({ root: project, configFile: false, logLevel: "warn" });
  const dist = join(project, "dist");

  await t.test("the page does not load what it does not need", () => {
    const page = readFileSync(join(dist, "index.html"), "utf8");
    const files = readdirSync(join(dist, "assets")).map((file) => file.replace(/-.{8}\.js$/, ""));
    assert.deepEqual(files.sort(), ["index", "learn", "shared", "throttle-js"]);
    assert.doesNotMatch(page, /learn|shared|throttle-js/);
  });

  await t.test("its build opens in Chromium", async () => {
    assert.deepEqual(await outcomeOf(chromium, dist), expected);
  });

  await t.test("on a page that forbids wasm, it works as well", async () => {
    const headers = { "Content-Security-Policy": "script-src 'self'" };
    assert.deepEqual(await outcomeOf(chromium, dist, headers), expected);
  });
});
