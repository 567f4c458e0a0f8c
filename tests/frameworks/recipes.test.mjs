// The recipes of docs/frameworks.md limit requests in the frameworks' own request handlers.

import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { join } from "node:path";
import test, { mock } from "node:test";
import { pathToFileURL } from "node:url";
import { frameworks } from "../../scripts/setup/frameworks.mjs";

const { modules, why: skip = false } = frameworks.check() ?? { why: "The frameworks are not set up" };

/** The frameworks are in a folder of the tools; all else is resolved as usual. */
const installed = /^(react-router|elysia|@trpc\/server|graphql)(\/|$)/;
if (!skip)
  registerHooks({
    resolve: (specifier, context, next) =>
      installed.test(specifier)
        ? next(specifier, { ...context, parentURL: pathToFileURL(join(modules, "x.mjs")).href })
        : next(specifier, context),
  });

// Windows do not end while a test runs.
mock.timers.enable({ apis: ["Date"], now: 1_767_225_600_000 });

const recipe = (name) => import(`./recipes/${name}.mjs`);
const limitOf = ({ headers }) => headers.get("RateLimit")?.replace(/;t=\d+$/, "");

test("React Router: a middleware of the root limits loaders", { skip }, async () => {
  const { createRequestHandler } = await import("react-router");
  const { middleware } = await recipe("react-router");
  const routes = {
    root: { id: "root", path: "", module: { default: () => null, middleware } },
    hello: { id: "hello", parentId: "root", path: "hello", module: { loader: () => Response.json("Hello") } },
  };
  const handle = createRequestHandler(
    {
      routes,
      entry: { module: { default: () => new Response("a page") } },
      assets: { entry: { imports: [], module: "" }, routes: {}, url: "", version: "" },
      publicPath: "/",
      assetsBuildDirectory: "",
      future: {},
      ssr: true,
      isSpaMode: false,
      prerender: [],
      routeDiscovery: { mode: "initial" },
    },
    "production",
  );
  const ask = (address) =>
    handle(new Request("http://localhost/hello", { headers: { "X-Real-IP": address } }));
  const first = await ask("192.0.2.1");
  assert.deepEqual([first.status, await first.json()], [200, "Hello"]);
  assert.equal(limitOf(first), '"sliding_window";r=1');
  assert.equal((await ask("192.0.2.1")).status, 200);
  assert.equal((await ask("192.0.2.1")).status, 429);
  assert.equal((await ask("192.0.2.2")).status, 200);
});

test("Elysia: around its handler, by the address that Bun passes", { skip }, async () => {
  const { default: server } = await recipe("elysia");
  const bun = (address) => ({ requestIP: () => ({ address }) });
  const ask = (address) => server.fetch(new Request("http://localhost/"), bun(address));
  const first = await ask("192.0.2.1");
  assert.deepEqual(
    [first.status, await first.text(), limitOf(first)],
    [200, "Hello", '"sliding_window";r=1'],
  );
  assert.equal((await ask("192.0.2.1")).status, 200);
  assert.equal((await ask("192.0.2.1")).status, 429);
  assert.equal((await ask("192.0.2.2")).status, 200);
});

test("tRPC: a middleware charges procedures by their cost", { skip }, async () => {
  const { fetchRequestHandler } = await import("@trpc/server/adapters/fetch");
  const { router } = await recipe("trpc");
  const ask = (path, user) =>
    fetchRequestHandler({
      endpoint: "/trpc",
      req: new Request(`http://localhost/trpc/${path}`),
      router,
      createContext: ({ resHeaders }) => ({ user, resHeaders }),
    });
  const first = await ask("report", "ann");
  assert.equal((await first.json()).result.data, "A long report");
  assert.equal(limitOf(first), '"token_bucket";r=2');
  assert.equal(limitOf(await ask("hello", "ann")), '"token_bucket";r=1');
  const denied = await ask("report", "ann");
  assert.deepEqual([denied.status, denied.headers.get("Retry-After")], [429, "7"]);
  assert.equal((await denied.json()).error.data.code, "TOO_MANY_REQUESTS");
  assert.equal((await ask("report", "bob")).status, 200);
});

test("GraphQL: a query costs as many fields as it asks for", { skip }, async () => {
  const { POST } = await recipe("graphql");
  const ask = (query, variables, user = "ann") =>
    POST(
      new Request("http://localhost/graphql", {
        method: "POST",
        headers: { Authorization: user },
        body: JSON.stringify({ query, variables }),
      }),
    );
  const small = await ask("{ users(first: 2) { name } }");
  assert.deepEqual((await small.json()).data, { users: [{ name: "Ann" }, { name: "Ann" }] });
  // One for `users`, and one for each name.
  assert.equal(limitOf(small), '"token_bucket";r=997');

  const nested = "query ($n: Int!) { users(first: $n) { name friends(first: 10) { name } } }";
  assert.equal(limitOf(await ask(nested, { n: 20 })), `"token_bucket";r=${997 - (1 + 20 + 20 + 200)}`);
  const denied = await ask(nested, { n: 100 });
  assert.equal(denied.status, 429);
  assert.equal(denied.headers.get("Retry-After"), null, "it can never fit");
  for (const query of [
    "{ nonsense",
    "{ users(first: 100) { ...f } } fragment f on User { friends(first: 100) { name } }",
    "query ($n: Int = 1000) { users(first: $n) { name } }",
  ]) {
    const rejected = await ask(query, undefined, "bob");
    assert.equal(rejected.status, 400);
    assert.equal((await rejected.json()).data, undefined);
  }
});
