// Hono and fetch handlers where no Node server writes the response, as in Workers, Bun and Deno.

import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { Hono } from "hono";
import { rateLimit as forFetch } from "tollgate/fetch";
import { rateLimit } from "tollgate/hono";
import { limiterOf, policyOf, promised } from "./lib/limits.mjs";
import { ReservingLimiter } from "./lib/reserving.mjs";

mock.method(console, "warn", () => {});

const key = () => "all";
const fields = ({ headers }) => [headers.get("RateLimit-Policy"), headers.get("RateLimit")];
const left = (remaining) => ['"api";q=9;w=60', `"api";r=${remaining};t=60`];

/** An app whose routes respond in every way that Hono has. */
function app(...guards) {
  const app = new Hono();
  app.onError((_error, c) => c.text("failed", 500));
  for (const options of guards) app.use(rateLimit({ key, ...options }));
  app.get("/text", (c) => c.text("Hello"));
  app.get("/response", () => new Response("Hello", { headers: { "X-Own": "1" } }));
  app.get("/redirect", () => Response.redirect("http://example.com/there"));
  app.get("/upgrade", () => Object.defineProperty(new Response(null), "status", { value: 101 }));
  app.get("/error", () => {
    throw new Error("broken");
  });
  return app;
}

test("every kind of response has the headers of all guards, once", async () => {
  const other = { limiter: limiterOf(policyOf(7, "other")) };
  const hono = app({ limiter: limiterOf(policyOf(9)) }, other);
  for (const [path, status] of Object.entries({
    text: 200,
    response: 200,
    redirect: 302,
    error: 500,
    missing: 404,
  })) {
    const response = await hono.request(`/${path}`);
    assert.equal(response.status, status, path);
    assert.equal(response.headers.get("RateLimit-Policy"), '"api";q=9;w=60, "other";q=7;w=60', path);
  }
  assert.equal((await hono.request("/response")).headers.get("X-Own"), "1");
  assert.equal((await hono.request("/redirect")).headers.get("Location"), "http://example.com/there");
  const denied = await hono.request("/text");
  assert.equal(denied.status, 429);
  assert.equal(denied.headers.get("RateLimit-Policy"), '"api";q=9;w=60, "other";q=7;w=60');
  assert.equal(denied.headers.get("Retry-After"), "60");
});

test("a response that cannot be copied stays as it is", async () => {
  const upgraded = await app({ limiter: limiterOf(policyOf(9)) }).request("/upgrade");
  assert.equal(upgraded.status, 101);
});

test("a response with its own headers of a limit lists them beside ours", async () => {
  const proxied = () => new Response("Hello", { headers: { "RateLimit-Policy": '"theirs";q=1;w=1' } });
  const handler = forFetch({ limiter: limiterOf(policyOf(9)), key }, proxied);
  const response = await handler(new Request("http://example.com/"));
  assert.deepEqual(fields(response), ['"theirs";q=1;w=1, "api";q=9;w=60', left(8)[1]]);
});

for (const [charge, counts] of [
  ["failures", { text: 0, response: 0, redirect: 0, error: 1, missing: 1 }],
  ["successes", { text: 1, response: 1, redirect: 1, error: 0, missing: 0 }],
])
  test(`charge: ${charge}`, async () => {
    for (const [path, count] of Object.entries(counts)) {
      const limiter = new ReservingLimiter(policyOf(9));
      await app({ limiter, charge }).request(`/${path}`);
      assert.deepEqual([limiter.open, limiter.get("all")], [0, count], path);
      // The same around a handler that knows nothing of it.
      const other = new ReservingLimiter(policyOf(9));
      const handler = forFetch({ limiter: other, key, charge }, (request) => app().fetch(request));
      await handler(new Request(`http://example.com/${path}`));
      assert.deepEqual([other.open, other.get("all")], [0, count], path);
    }
  });

test("fetch: a handler that throws has failed", async () => {
  for (const [charge, count] of [
    ["failures", 1],
    ["successes", 0],
  ]) {
    const limiter = new ReservingLimiter(policyOf(9));
    const handler = forFetch({ limiter, key, charge }, async () => {
      throw new Error("broken");
    });
    await assert.rejects(handler(new Request("http://example.com/")), /broken/);
    assert.deepEqual([limiter.open, limiter.get("all")], [0, count]);
  }
});

test("fetch: several guards list all policies, also when one denies", async () => {
  const guard = (name, inner) => forFetch({ limiter: limiterOf(policyOf(1, name)), key }, inner);
  const handler = guard(
    "outer",
    guard("inner", () => new Response("Hello")),
  );
  const roomy = forFetch(
    { limiter: limiterOf(policyOf(9, "outer")), key },
    guard("inner", () => new Response("Hello")),
  );
  const request = new Request("http://example.com/");
  const members = ({ headers }) => headers.get("RateLimit-Policy").split(", ").sort();
  assert.deepEqual(members(await handler(request)), ['"inner";q=1;w=60', '"outer";q=1;w=60']);
  await roomy(request);
  const denied = await roomy(request);
  assert.deepEqual([denied.status, members(denied)], [429, ['"inner";q=1;w=60', '"outer";q=9;w=60']]);
});

/** A namespace of objects that settle only when they are let. */
function objects() {
  const limiter = limiterOf({ ...policyOf(9), denied: "free" });
  const gate = promised();
  const getByName = (name) => ({
    hit: () => assert.fail("a guard that reserves does not hit"),
    reserve: async (_policies, cost) => limiter.reserve(name, cost),
    settle: async (_policies, id) => {
      await gate.promise;
      return limiter.settle(id);
    },
    cancel: async (_policies, id) => {
      await gate.promise;
      return limiter.cancel(id);
    },
  });
  return { limiter, gate, namespace: { getByName } };
}

test("in a Worker, objects are settled after the response, which does not wait", async () => {
  for (const status of [200, 401]) {
    const handled = (namespace) => {
      const options = { limiter: namespace, policy: policyOf(9), key, charge: "failures" };
      const hono = new Hono();
      hono.get("/", rateLimit(options), (c) => c.body(null, status));
      const handler = forFetch(options, () => new Response(null, { status }));
      return [hono.fetch, handler];
    };
    for (const at of [0, 1]) {
      const { limiter, gate, namespace } = objects();
      const waiting = [];
      const context = { waitUntil: (promise) => waiting.push(promise), passThroughOnException() {} };
      const request = new Request("http://example.com/");
      const response = await handled(namespace)[at](request, { LIMITERS: namespace }, context);
      assert.equal(response.status, status);
      assert.equal(waiting.length, 1);
      gate.resolve();
      await Promise.all(waiting);
      assert.equal(limiter.get("all"), status === 200 ? 0 : 1);
    }
  }
});

test("addresses as Deno and Bun pass them", async () => {
  for (const platform of [
    (address) => ({ remoteAddr: { hostname: address } }),
    (address) => ({ requestIP: () => ({ address }) }),
    (address) => ({ server: { requestIP: () => ({ address }) } }),
  ]) {
    const hono = app({ limiter: limiterOf(policyOf(1)), key: undefined });
    const limited = forFetch({ limiter: limiterOf(policyOf(1)) });
    const ask = async (address) => [
      (await hono.request("/text", {}, platform(address))).status,
      (await limited(new Request("http://example.com/"), platform(address)))?.status ?? 200,
    ];
    assert.deepEqual(await ask("2001:db8::1"), [200, 200]);
    assert.deepEqual(await ask("2001:db8::2"), [429, 429]);
    assert.deepEqual(await ask("192.0.2.1"), [200, 200]);
  }
});

test("fetch: undefined if the request may go on, the handler's arguments all passed on", async () => {
  const limited = forFetch({ limiter: limiterOf(policyOf(1)), key });
  const request = new Request("http://example.com/");
  assert.equal(await limited(request), undefined);
  assert.equal((await limited(request)).status, 429);
  const handler = forFetch({ limiter: limiterOf(policyOf(1)), key }, (...args) =>
    Response.json(args.slice(1)),
  );
  assert.deepEqual(await (await handler(request, { env: 1 }, { context: 2 })).json(), [
    { env: 1 },
    { context: 2 },
  ]);
});

test("onDenied returns the response, with the headers of the limit", async () => {
  const onDenied = ({ retryAfter }) => Response.json({ retryAfter }, { status: 420 });
  const options = { limiter: limiterOf(policyOf(1)), key, cost: 1, onDenied };
  const handler = forFetch(options, () => new Response("Hello"));
  const request = new Request("http://example.com/");
  await handler(request);
  const denied = await handler(request);
  assert.deepEqual([denied.status, await denied.json()], [420, { retryAfter: 60_000 }]);
  assert.equal(denied.headers.get("Retry-After"), "60");
  const hono = app({ ...options, limiter: limiterOf(policyOf(1)) });
  await hono.request("/text");
  const other = await hono.request("/text");
  assert.deepEqual([other.status, other.headers.get("Retry-After")], [420, "60"]);
});
