// The client's address is found behind proxies and over IPv6; without one, all clients share a budget.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { describe, mock } from "node:test";
import { Hono } from "hono";
import { inRanges, ipKey } from "tollgate";
import { ask } from "./lib/client.mjs";
import { frameworks, listening, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf } from "./lib/limits.mjs";

const warnings = [];
mock.method(console, "warn", (text) => warnings.push(text));
/** Returns the warnings since it was last called. */
const warned = () => warnings.splice(0);

const forwarded = (addresses) => ({ headers: { "X-Forwarded-For": addresses } });
const routes = (options = {}) => ({ "/": { guards: [{ limiter: limiterOf(policyOf(1)), ...options }] } });

/** What each framework's warning says to set. */
const cures = {
  express: /app\.set\("trust proxy", 1\)/,
  fastify: /Fastify\(\{ trustProxy: "10\.0\.0\.1" \}\)/,
  hono: /give key, .*"X-Real-IP"/,
  koa: /app\.proxy = true and app\.maxIpsCount = 1/,
  fetch: /give key, .*"X-Real-IP"/,
};

/** Servers that trust one proxy, as each framework has it; where it has none, by the key. */
const trusting = {
  express: () => createServer(frameworks.express.app(routes()).set("trust proxy", 1)),
  fastify: async () => (await frameworks.fastify.app(routes(), { trustProxy: "127.0.0.1" }).ready()).server,
  koa: () =>
    createServer(Object.assign(frameworks.koa.app(routes()), { proxy: true, maxIpsCount: 1 }).callback()),
  hono: () => frameworks.hono.server(routes({ key: (c) => ipKey(lastOf(c.req.header("X-Forwarded-For"))) })),
  fetch: () =>
    frameworks.fetch.server(routes({ key: ({ headers }) => ipKey(lastOf(headers.get("X-Forwarded-For"))) })),
};
const lastOf = (list) => list.split(",").at(-1);

for (const [name, framework] of Object.entries(frameworks)) {
  describe(name, () => {
    test("requests of an untrusted proxy share a budget, with one warning that says what to set", async (t) => {
      warned();
      const url = await served(t, framework, routes());
      assert.equal((await ask(url)).status, 200);
      assert.deepEqual(warned(), []);
      assert.equal((await ask(url, forwarded("192.0.2.1"))).status, 429);
      const [text, ...rest] = warned();
      assert.match(text, /^tollgate: requests come from (::ffff:)?127\.0\.0\.1 with X-Forwarded-For/);
      assert.match(text, cures[name]);
      assert.deepEqual(rest, []);
      await ask(url, forwarded("192.0.2.2"));
      assert.deepEqual(warned(), []);
    });

    test("behind a proxy that is trusted, each client has its own, and cannot name another", async (t) => {
      warned();
      const url = await listening(t, await trusting[name]());
      assert.equal((await ask(url, forwarded("192.0.2.1"))).status, 200);
      assert.equal((await ask(url, forwarded("192.0.2.2"))).status, 200);
      assert.equal((await ask(url, forwarded("192.0.2.1"))).status, 429);
      assert.equal((await ask(url, forwarded("198.51.100.7, 192.0.2.1"))).status, 429);
      assert.deepEqual(warned(), []);
    });

    test("an IPv6 subscriber is one client, whichever of its addresses it uses", async (t) => {
      const url = await listening(t, await trusting[name]());
      assert.equal((await ask(url, forwarded("2001:db8:1:2::1"))).status, 200);
      assert.equal((await ask(url, forwarded("2001:DB8:1:2:ffff::9"))).status, 429);
      assert.equal((await ask(url, forwarded("2001:db8:1:3::1"))).status, 200);
    });

    test("without an address all share one budget, with one warning", async (t) => {
      warned();
      const folder = mkdtempSync(join(tmpdir(), "tollgate-"));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      const socketPath = join(folder, "socket");
      const server = await framework.server(routes());
      await new Promise((resolve) => server.listen(socketPath, resolve));
      t.after(() => server.close());
      const get = () => ask("http://localhost/", { socketPath });
      assert.equal((await get()).status, 200);
      assert.equal((await get()).status, 429);
      const [text, ...rest] = warned();
      assert.match(text, /^tollgate: a request without a client address/);
      assert.match(text, cures[name]);
      assert.deepEqual(rest, []);
    });
  });
}

test("a server that passes no address, as Next does, is an error that says what to set", async () => {
  const policy = policyOf(1);
  const passing = { remoteAddr: { hostname: "192.0.2.1" } };
  const message =
    /^key is required, since the server passes no client address \(Next never does\); give key, /;
  for (const options of [{ policy }, { policy, skip: inRanges(["192.0.2.0/24"]) }]) {
    const limited = frameworks.fetch.rateLimit(options);
    for (const platform of [undefined, {}, { params: Promise.resolve({}) }, { waitUntil() {} }])
      await assert.rejects(limited(new Request("http://example.com/"), platform), {
        code: "invalid_option",
        message,
      });
    assert.equal(await limited(new Request("http://example.com/"), passing), undefined);
  }

  const app = new Hono().use(frameworks.hono.rateLimit({ policy })).get("/", (c) => c.text("Hello"));
  app.onError((error, c) => c.text(error.message, 500));
  assert.match(await (await app.request("/")).text(), message);
  assert.equal(await (await app.request("/", {}, passing)).text(), "Hello");
});

test("only an address of an inner network is taken for a proxy's", async () => {
  const inner = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "169.254.0.1",
    "100.64.0.1",
  ].concat(["100.127.0.1", "::1", "fc00::1", "fd12:3456::1", "fe80::1%eth0", "::ffff:10.0.0.1"]);
  const outer = [
    "126.0.0.1",
    "11.0.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.169.0.1",
    "169.253.0.1",
    "100.63.0.1",
  ].concat(["100.128.0.1", "1.10.0.1", "2001:db8::1", "fbff::1", "fec0::1", "1::1"]);
  for (const address of [...inner, ...outer]) {
    warned();
    // Each a module of its own, which has warned of nothing yet.
    const { rateLimit } = await import(`../../dist/fetch.js?${address}`);
    const incoming = { socket: { remoteAddress: address }, headers: { "x-forwarded-for": "192.0.2.1" } };
    await rateLimit({ policy: policyOf(1) })(new Request("http://example.com/"), { incoming });
    assert.equal(warned().length, inner.includes(address) ? 1 : 0, address);
  }
});

test("a setting that lets clients name their address is warned of", async (t) => {
  warned();
  const trustsAll = frameworks.express.app(routes()).set("trust proxy", true);
  await ask(await listening(t, createServer(trustsAll)), forwarded("192.0.2.1"));
  assert.match(warned()[0], /"trust proxy": true takes the address that a client names/);

  const fastify = async (trustProxy) => {
    const app = frameworks.fastify.app(routes(), { trustProxy });
    await ask(await listening(t, (await app.ready()).server), forwarded("198.51.100.7, 192.0.2.1"));
    return warned();
  };
  for (const setting of ["127.0.0.1", 1, 2, (address) => address === "127.0.0.1"])
    assert.deepEqual(await fastify(setting), []);
  assert.match((await fastify(true))[0], /trustProxy: true takes the address that a client names/);

  const unbounded = Object.assign(frameworks.koa.app(routes()), { proxy: true });
  await ask(await listening(t, createServer(unbounded.callback())), forwarded("192.0.2.1"));
  assert.match(warned()[0], /app\.proxy without app\.maxIpsCount takes the address that a client names/);
});

test("an invalid address from a proxy counts in the shared budget, and is no error", async (t) => {
  const app = frameworks.express.app(routes()).set("trust proxy", 1);
  const url = await listening(t, createServer(app));
  assert.equal((await ask(url, forwarded("unknown"))).status, 200);
  assert.equal((await ask(url, forwarded("_hidden"))).status, 429);
});
