// For every endpoint of the table, the sum that is charged is the sum of the provider's bill, to the millionth.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { RateLimiter } from "tollgate";
import { budgetFetch } from "tollgate/ai";
import { endpoints } from "../../js/ai/endpoints.ts";
import fc from "../lib/properties.mjs";
import { billOf, bills, prices } from "./lib/bills.mjs";
import { countsOf, policies, setting } from "./lib/setting.mjs";

/** The address of an endpoint. */
const addressOf = (pattern) =>
  pattern.startsWith(":")
    ? `https://api.example.com/v1beta/models/m${pattern}?alt=sse`
    : `https://api.example.com/v1/${pattern.replace("*", "7")}`;

const count = fc.integer({ min: 0, max: 5_000 });
const fields = [
  "cached",
  "written",
  "long",
  "audioIn",
  "imageIn",
  "output",
  "audioOut",
  "imageOut",
  "searches",
];

/** A use that an endpoint can say: its parts are no more than the whole. */
const useOf = (says) =>
  fc.tuple(fc.integer({ min: 1, max: 5_000 }), ...fields.map(() => count)).map(([input, ...counts]) => {
    const given = Object.fromEntries(fields.map((name, at) => [name, says.includes(name) ? counts[at] : 0]));
    const { cached, written, audioIn, imageIn, audioOut, imageOut } = given;
    return {
      ...given,
      long: Math.min(given.long, written),
      searches: given.searches % 5,
      input: input + cached + written + audioIn + imageIn,
      // A provider that says no output has said nothing.
      output: says.includes("output") ? 1 + given.output + audioOut + imageOut : 0,
    };
  });

/** Returns what a use is sent as: a body, or a stream of events. */
function answerOf({ body, events }, use, isStream) {
  if (!isStream) return Response.json(body(use));
  const text = events(use)
    .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
    .join("");
  return new Response(text, { headers: { "Content-Type": "text/event-stream" } });
}

const formOf = (fields, isStream) => {
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...fields, ...(isStream && { stream: "true" }) }))
    form.set(name, value);
  return form;
};

/** Returns the sum that was charged for calls, each with a use. */
async function chargedFor(pattern, calls) {
  const bill = bills[pattern];
  const limiter = new RateLimiter(policies());
  const charges = [];
  const answers = [];
  const fetch = budgetFetch({
    limiter,
    key: "a",
    prices,
    estimate: bill.estimate,
    onCharge: ({ usd }) => charges.push(usd),
    fetch: async () => answers.shift(),
  });
  const url = addressOf(pattern);
  for (const { use, isStream } of calls) {
    const body = bill.form
      ? formOf(bill.form, isStream)
      : JSON.stringify({ ...bill.request, ...(isStream && { stream: true }) });
    answers.push(answerOf(bill, use, isStream));
    await (await fetch(url, { method: "POST", body })).text();
    for (const { path, text } of bill.fetched?.(use) ?? []) {
      const headers = { "Content-Type": path === "" ? "application/json" : "application/x-jsonl" };
      answers.push(new Response(text, { headers }));
      assert.equal(await (await fetch(`${url}/job_1${path}`)).text(), text);
    }
  }
  assert.equal(charges.length, calls.length);
  const counts = countsOf(limiter, "a");
  assert.equal(
    charges.reduce((sum, each) => sum + each, 0),
    counts.usd,
  );
  return counts;
}

const { free, job, ...billed } = endpoints;

describe("the sum charged is the sum of the bill", () => {
  const patterns = [...Object.values(billed).flat(), "batches"];
  assert.deepEqual(Object.keys(bills).sort(), [...patterns].sort());
  for (const pattern of patterns)
    test(pattern, async () => {
      const bill = bills[pattern];
      const stream = bill.events === undefined ? [false] : bill.body === undefined ? [true] : [false, true];
      const call = fc.record({ use: useOf(bill.says), isStream: fc.constantFrom(...stream) });
      await fc.assert(
        fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 6 }), async (calls) => {
          const sum = (of) => calls.reduce((total, { use }) => total + of(use), 0);
          const [input, output] = [sum((use) => use.input), sum((use) => use.output)];
          assert.deepEqual(await chargedFor(pattern, calls), {
            requests: calls.length,
            tokens: input + output,
            inputTokens: input,
            outputTokens: output,
            usd: sum((use) => billOf(use, bill.isBatch === true)),
            running: 0,
          });
        }),
        { numRuns: 30 },
      );
    });
});

describe("what says no usage is charged as estimated", () => {
  const estimate = { inputTokens: 3, outputTokens: 70, usd: "0.5" };
  const asked = { method: "POST", body: JSON.stringify({ model: "m", input: "hello" }) };
  for (const pattern of [...job, "audio/speech"])
    test(pattern, async () => {
      const { limiter, options } = setting();
      const sound = () => new Response("sound", { headers: { "Content-Type": "audio/mpeg" } });
      const fetch = budgetFetch({
        ...options,
        prices,
        estimate,
        fetch: async () => (pattern === "audio/speech" ? sound() : Response.json({ any: "thing" })),
      });
      await fetch(addressOf(pattern), asked);
      const { requests, outputTokens, usd, running } = countsOf(limiter);
      assert.deepEqual([requests, outputTokens, usd, running], [1, 70, 500_000, 0]);
      const tokens = { inputTokens: 100, outputTokens: 70 };
      const answered = async () => (pattern === "audio/speech" ? sound() : Response.json({ any: "thing" }));
      const priced = budgetFetch({ ...options, key: "b", prices, estimate: tokens, fetch: answered });
      await priced(addressOf(pattern), asked);
      // 125 and 700 millionths, and half of that for a batch alone.
      assert.equal(limiter.get("b", "usd"), /batch/.test(pattern) ? 413 : 825);
      if (pattern === "audio/speech") return;
      const refused = await budgetFetch({ ...options, prices, fetch: () => assert.fail() })(
        addressOf(pattern),
        asked,
      );
      assert.equal(refused.status, 400);
    });
});

describe("a free endpoint", () => {
  for (const pattern of free)
    test(pattern, async () => {
      const { limiter, options } = setting();
      const fetch = budgetFetch({
        ...options,
        fetch: async () => Response.json({ usage: { input_tokens: 5 } }),
      });
      for (const body of [JSON.stringify({ model: "none", input: "hello" }), "{", undefined])
        assert.equal((await fetch(addressOf(pattern), { method: "POST", body })).status, 200);
      assert.equal(limiter.get("user:42", "requests"), 0);
    });
});

test("the guide has the table", () => {
  const guide = readFileSync(new URL("../../docs/llm-budgets.md", import.meta.url), "utf8");
  const named = [...guide.matchAll(/^\| (?<names>`[^|]*) \|/gm)].flatMap(({ groups }) =>
    [...groups.names.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  for (const pattern of Object.values(endpoints).flat())
    assert.ok(named.includes(pattern), `docs/llm-budgets.md does not name ${pattern}`);
});
