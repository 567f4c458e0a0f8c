import assert from "node:assert/strict";
import test from "node:test";
import { mistakesIn } from "../../scripts/lib/config.mjs";

const policies = { api: { algorithm: "fix_window", limit: 9, scale: "1m" } };
const rules = [{ path: "/*", policies: "api" }];
const durable_objects = { bindings: [{ name: "LIMITERS", class_name: "RateLimiterObject" }] };

const starts = async (TOLLGATE, more = {}) => {
  const mistakes = await mistakesIn({ durable_objects, vars: { TOLLGATE }, ...more });
  return mistakes.map((mistake) => mistake.split(": ")[0]);
};

test("what is right has no mistakes, as a table and as JSON", async () => {
  for (const right of [undefined, { policies }, { policies, rules, upstream: "https://origin.example" }]) {
    assert.deepEqual(await starts(right), []);
    assert.deepEqual(await starts(right && JSON.stringify(right)), []);
  }
  const services = [{ binding: "ORIGIN", service: "origin" }];
  assert.deepEqual(await starts({ policies, rules, upstream: "ORIGIN" }, { services }), []);
});

test("mistakes are found before a deploy, each by its path", async () => {
  assert.deepEqual(await starts({ policies, rules }), ["TOLLGATE.rules"]);
  assert.deepEqual(await starts({ policies, rules, upstream: "ORIGIN" }), ["TOLLGATE.upstream"]);
  assert.deepEqual(await starts("{"), ["TOLLGATE"]);
  const wrong = { policies: { api: { ...policies.api, limit: 0 } }, origins: ["app.example"], speed: 1 };
  const found = ["TOLLGATE.origins[0]", "TOLLGATE.speed", "TOLLGATE.policies.api.limit"];
  assert.deepEqual(await starts(wrong), found);
  const migrations = [{ tag: "v1", new_classes: ["RateLimiterObject"] }];
  assert.deepEqual(await starts({}, { migrations }), ["migrations"]);
  assert.deepEqual(await starts({}, { durable_objects: { bindings: [] } }), ["durable_objects.bindings"]);
});
