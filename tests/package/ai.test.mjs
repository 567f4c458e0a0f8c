// The examples of tollgate/ai run against the fake provider, and the packed entry has no wasm.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { createTestHarness } from "wrangler";
import { bin } from "../../scripts/lib/paths.mjs";
import { startProvider, tokensOf } from "../ai/lib/provider.mjs";
import { freshExamples, run } from "./lib/project.mjs";

let examples;
let provider;
before(async () => {
  examples = await freshExamples("ai");
  provider = await startProvider();
});
after(() => provider?.stop());

const options = { timeout: 300_000 };

test("ai-sdk: a call, a stream, and one that is denied", options, async () => {
  assert.equal(
    await run(process.execPath, ["main.mjs"], { cwd: examples("ai-sdk") }),
    [
      "Hello, one, two, three.",
      "Hello, one, two, three.",
      "denied by tokens: it may use 397 tokens",
      // Twice 30 tokens, 10 cached ones and 25 of output: 37.5, 1.25 and 250, rounded up.
      "578 millionths of a dollar this month",
      "",
    ].join("\n"),
  );
});

test("openai-fetch: tenants have their own budgets under that of the account", options, async () => {
  const prompt = JSON.stringify({ output: 140, perEvent: 10 });
  const env = { ...process.env, OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: "key", PROMPT: prompt };
  const input = tokensOf(prompt);
  const output = await run(process.execPath, ["main.mjs"], { cwd: examples("openai-fetch"), env });
  const left = (calls) => 300 - calls * (input + 140);
  const lines = output.trimEnd().split("\n");
  assert.deepEqual(lines, [
    `a: 560 characters, ${left(1)} of 300 tokens are left`,
    `b: 560 characters, ${left(1)} of 300 tokens are left`,
    "a: the budget denies the call by tokens: try again in …",
    "b: the budget denies the call by tokens: try again in …",
  ]);
  assert.equal(provider.ledger.length, 2);
});

test("llm-worker: strict types; each visitor has a budget", options, async (t) => {
  provider.ledger.length = 0;
  const folder = examples("llm-worker");
  await run(bin("tsc"), ["-p", folder]);
  const harness = createTestHarness({
    workers: [
      { configPath: join(folder, "wrangler.toml"), vars: { MODEL_URL: provider.url, MODEL_KEY: "key" } },
    ],
  });
  t.after(() => harness.close());
  await harness.listen();
  const ask = (address, plan) =>
    harness.fetch("http://localhost/", {
      method: "POST",
      headers: { "CF-Connecting-IP": address },
      body: JSON.stringify(plan),
    });
  for (let count = 0; count < 3; count += 1) {
    const response = await ask("192.0.2.1", { output: 250, perEvent: 25 });
    assert.equal(response.status, 200);
    const text = await response.text();
    assert.equal(text.match(/word/g).length, 250);
    assert.equal(text.includes('"choices":[]'), false);
  }
  const denied = await ask("192.0.2.1", { output: 250 });
  assert.equal(denied.status, 429);
  assert.match(denied.headers.get("Retry-After"), /^\d+$/);
  assert.deepEqual((await denied.json()).error.policies, ["tokens"]);
  assert.equal((await ask("192.0.2.2", { output: 5 })).status, 200);
  assert.equal(provider.ledger.length, 4);
});

test("the entry imports its errors, and has no wasm", async () => {
  const folder = examples("ai-sdk");
  const { default: _, ...names } = await import(join(folder, "../node_modules/tollgate/dist/ai.js"));
  assert.deepEqual(Object.keys(names).sort(), [
    "BudgetDenied",
    "TollgateError",
    "budget",
    "budgetFetch",
    "budgetRun",
    "dollars",
    "usd",
  ]);
  for (const extension of ["js", "cjs"]) {
    const text = readFileSync(join(folder, `../node_modules/tollgate/dist/ai.${extension}`), "utf8");
    const paths = [...text.matchAll(/(?:\bfrom |\brequire\()["']([.\w][^"']*)["']/g)].map(([, path]) => path);
    assert.deepEqual([...new Set(paths)], [`./errors.${extension}`]);
    assert.doesNotMatch(text, /WebAssembly|AGFzbQ/);
  }
});
