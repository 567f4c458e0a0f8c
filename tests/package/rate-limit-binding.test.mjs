// Cloudflare's rate-limit binding decides behind our guards, in workerd, with headers that claim no more than it knows.

import assert from "node:assert/strict";
import test from "node:test";
import { createTestHarness } from "wrangler";
import { freshProject } from "./lib/project.mjs";

const fields = ({ headers }) =>
  Object.fromEntries(
    ["RateLimit-Policy", "RateLimit", "Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining"].flatMap(
      (name) => (headers.has(name) ? [[name, headers.get(name)]] : []),
    ),
  );

test("env.RATE_LIMIT as a limiter", { timeout: 300_000 }, async (t) => {
  const root = await freshProject("rate-limit-binding", "tests/package/fixtures/rate-limit-binding");
  const harness = createTestHarness({ root, workers: [{ configPath: "wrangler.json" }] });
  t.after(() => harness.close());
  await harness.listen();
  const ask = (path, address) =>
    harness.fetch(`http://localhost${path}`, { headers: { "CF-Connecting-IP": address } });

  /** Sends six requests of an address; once more by another, if a window of the binding ended meanwhile. */
  const six = async (path, network) => {
    for (const host of [1, 2]) {
      const responses = [];
      for (let count = 0; count < 6; count += 1) responses.push(await ask(path, `${network}.${host}`));
      if (responses[5].status === 429 && responses[3].status === 429) return responses;
    }
    return assert.fail("it never denies the fourth request");
  };

  for (const [path, network, legacy] of [
    ["/hono", "192.0.2", false],
    ["/fetch", "198.51.100", true],
  ])
    await t.test(path, async () => {
      const responses = await six(path, network);
      assert.deepEqual(
        responses.map(({ status }) => status),
        [200, 200, 200, 429, 429, 429],
      );
      const policy = { "RateLimit-Policy": '"burst";q=3;w=60', ...(legacy && { "X-RateLimit-Limit": "3" }) };
      assert.deepEqual(fields(responses[0]), policy);
      assert.equal(await responses[0].text(), "Hello\n");
      assert.deepEqual(fields(responses[3]), {
        ...policy,
        RateLimit: '"burst";r=0;t=60',
        "Retry-After": "60",
        ...(legacy && { "X-RateLimit-Remaining": "0" }),
      });
      assert.deepEqual((await responses[3].json())["violated-policies"], ["burst"]);
    });
});
