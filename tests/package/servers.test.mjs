// Every example server, with the packed package, admits exactly the limit of a load at once.

import assert from "node:assert/strict";
import test, { before } from "node:test";
import { adapters } from "../../scripts/package.mjs";
import { freshExamples } from "./lib/project.mjs";
import { served } from "./lib/served.mjs";

let examples;
before(async () => {
  examples = await freshExamples("servers");
});

test("example hono: two limiters on a route list both, and a denial says which", {
  timeout: 120_000,
}, async (t) => {
  const url = await served(t, examples("hono"));
  const fields = ({ headers }) =>
    ["RateLimit-Policy", "RateLimit", "Retry-After"].map((name) =>
      headers
        .get(name)
        ?.replace(/t=3[56]\d\d/g, "t=…")
        .replace(/^3[56]\d\d$/, "…"),
    );
  const policies = '"per-ip";q=5;w=3600, "login";q=2;w=3600';
  for (const left of [1, 0]) {
    const response = await fetch(new URL("login", url));
    assert.equal(await response.text(), "Welcome\n");
    const limits = `"per-ip";r=${left + 3};t=…, "login";r=${left};t=…`;
    assert.deepEqual(fields(response), [policies, limits, undefined]);
  }

  const denied = await fetch(new URL("login", url));
  assert.equal(denied.status, 429);
  assert.deepEqual(fields(denied), [policies, '"per-ip";r=2;t=…, "login";r=0;t=…', "…"]);
  assert.deepEqual((await denied.json())["violated-policies"], ["login"]);

  const missing = await fetch(new URL("missing", url));
  assert.equal(missing.status, 404);
  assert.deepEqual(fields(missing), ['"per-ip";q=5;w=3600', '"per-ip";r=1;t=…', undefined]);
});

for (const name of ["node-http", ...adapters]) {
  test(`example ${name}`, { timeout: 120_000 }, async (t) => {
    const url = await served(t, examples(name));
    for (let remaining = 4; remaining >= 0; remaining--) {
      const response = await fetch(url);
      assert.equal(response.status, 200);
      assert.equal(await response.text(), "Hello\n");
      assert.equal(response.headers.get("RateLimit-Policy"), '"per-ip";q=5;w=3600');
      assert.match(response.headers.get("RateLimit"), new RegExp(`^"per-ip";r=${remaining};t=3[56]\\d\\d$`));
      assert.equal(response.headers.get("Retry-After"), null);
    }

    const denied = await fetch(url);
    assert.equal(denied.status, 429);
    assert.equal(denied.headers.get("RateLimit-Policy"), '"per-ip";q=5;w=3600');
    assert.match(denied.headers.get("RateLimit"), /^"per-ip";r=0;t=3[56]\d\d$/);
    assert.match(denied.headers.get("Retry-After"), /^3[56]\d\d$/);
    assert.match(denied.headers.get("Content-Type"), /^application\/problem\+json\b/);
    const { status, type, "violated-policies": violated } = await denied.json();
    assert.equal(status, 429);
    assert.match(type, /#quota-exceeded$/);
    assert.deepEqual(violated, ["per-ip"]);
  });
}

for (const name of adapters) {
  test(`example ${name}: of a load at once exactly the limit passes`, { timeout: 120_000 }, async (t) => {
    const url = await served(t, examples(name));
    const responses = await Promise.all(Array.from({ length: 200 }, () => fetch(url)));
    const statuses = responses.map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 200).length, 5);
    assert.equal(statuses.filter((status) => status === 429).length, 195);
  });
}
