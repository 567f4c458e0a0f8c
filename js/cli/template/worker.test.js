import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { createTestHarness } from "wrangler";

const worker = createTestHarness({ root: import.meta.dirname, workers: [{ configPath: "wrangler.toml" }] });
before(() => worker.listen());
after(() => worker.close());

const login = (address) =>
  worker.fetch("http://localhost/login", { method: "POST", headers: { "CF-Connecting-IP": address } });

test("an address may log in five times a minute", async () => {
  for (let count = 0; count < 5; count += 1) assert.equal((await login("192.0.2.1")).status, 200);
  const denied = await login("192.0.2.1");
  assert.equal(denied.status, 429);
  assert.ok(Number(denied.headers.get("Retry-After")) > 0);
});

test("other addresses are not limited", async () => {
  const response = await login("192.0.2.2");
  assert.equal(await response.text(), "POST /login came through\n");
  assert.match(response.headers.get("RateLimit"), /^"login";r=4;/);
});
