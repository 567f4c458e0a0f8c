// Builds by Vite and webpack with the packed package run in Chromium.

import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { build } from "vite";
import webpack from "webpack";
import { after, before } from "../lib/hooks.mjs";
import { expected } from "./lib/expected.mjs";
import { launch, outcomeOf } from "./lib/page.mjs";
import { freshFixture } from "./lib/project.mjs";

let chromium;
before(async () => {
  chromium = await launch();
});
after(() => chromium?.close());

test("Vite", async (t) => {
  const project = await freshFixture("vite");
  await build({ root: project, configFile: false, logLevel: "warn" });
  const dist = join(project, "dist");

  await t.test("its build opens in Chromium", async () => {
    assert.deepEqual(await outcomeOf(chromium, dist), expected);
  });

  await t.test("on a page that forbids wasm, the error says what to allow", async () => {
    const outcome = await outcomeOf(chromium, dist, { "Content-Security-Policy": "script-src 'self'" });
    assert.equal(outcome.code, "wasm_blocked");
    assert.match(outcome.message, /Content-Security-Policy .*'wasm-unsafe-eval'.* script-src/);
  });

  await t.test("and works once that is allowed", async () => {
    const policy = "script-src 'self' 'wasm-unsafe-eval'";
    assert.deepEqual(await outcomeOf(chromium, dist, { "Content-Security-Policy": policy }), expected);
  });
});

test("webpack: its build opens in Chromium", async () => {
  const project = await freshFixture("webpack");
  const stats = await promisify(webpack)({
    context: project,
    mode: "production",
    target: "web",
    entry: "./main.js",
    output: { path: join(project, "dist") },
    performance: false,
  });
  const { errors, warnings } = stats.toJson();
  assert.deepEqual([...errors, ...warnings], []);
  assert.deepEqual(await outcomeOf(chromium, project), expected);
});
