// `skip: inRanges([…])`: the client's address decides, never that of a proxy that is not trusted.

import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { inRanges } from "tollgate";
import { ask } from "./lib/client.mjs";
import { frameworks, served } from "./lib/frameworks.mjs";
import { policyOf } from "./lib/limits.mjs";

mock.method(console, "warn", () => {});

for (const [name, framework] of Object.entries(frameworks)) {
  const statuses = async (t, ranges, headers = {}) => {
    const guards = [{ policy: policyOf(1), skip: inRanges(ranges) }];
    const url = await served(t, framework, { "/": { guards } });
    return [(await ask(url, { headers })).status, (await ask(url, { headers })).status];
  };

  test(`${name}: a client in the ranges is not limited, another one is`, async (t) => {
    assert.deepEqual(await statuses(t, ["127.0.0.0/8", "::1"]), [200, 200]);
    assert.deepEqual(await statuses(t, ["10.0.0.0/8", "::/0"]), [200, 429]);
    assert.deepEqual(await statuses(t, []), [200, 429]);
  });

  test(`${name}: clients behind a proxy in the ranges are limited`, async (t) => {
    assert.deepEqual(await statuses(t, ["127.0.0.0/8"], { "X-Forwarded-For": "203.0.113.9" }), [200, 429]);
    assert.deepEqual(await statuses(t, ["203.0.113.9"], { "X-Forwarded-For": "203.0.113.9" }), [200, 429]);
  });
}
