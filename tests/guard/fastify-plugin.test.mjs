// The plugin of Fastify limits the instance that it is registered on, with options of each route, in any form.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import Fastify from "fastify";
import { TollgateError } from "tollgate";
import plugin, { rateLimit } from "tollgate/fastify";
import { limitFields } from "./lib/client.mjs";
import { limiterOf, policyOf } from "./lib/limits.mjs";

const policy = policyOf(2);

/** Requests a path several times. Returns the statuses. */
async function statuses(app, url, times = 3, options = {}) {
  const all = [];
  for (let time = 0; time < times; time += 1) all.push((await app.inject({ url, ...options })).statusCode);
  return all;
}

const hello = async () => "Hello\n";
const required = createRequire(import.meta.url)("tollgate/fastify");

const forms = {
  "register(rateLimit, options)": (app) => app.register(rateLimit, { policy }),
  "register(rateLimit(options))": (app) => app.register(rateLimit({ policy })),
  "register(rateLimit(options), more)": (app) => app.register(rateLimit({ policy: policyOf(9) }), { policy }),
  "register(import(…), options)": (app) => app.register(import("tollgate/fastify"), { policy }),
  "register(require(…), options)": (app) => app.register(required, { policy }),
  "the default export": (app) => app.register(plugin, { policy }),
  "addHook(…, rateLimit(options))": (app) => app.addHook("onRequest", rateLimit({ policy })),
};

for (const [form, add] of Object.entries(forms))
  test(`${form} limits routes that come before it and after it, and requests without a route`, async () => {
    const app = Fastify();
    app.get("/before", hello);
    add(app);
    app.get("/after", hello);
    const first = await app.inject("/before");
    assert.deepEqual(limitFields(first), {
      "ratelimit-policy": '"api";q=2;w=60',
      ratelimit: '"api";r=1;t=60',
    });
    assert.equal((await app.inject("/after")).statusCode, 200);
    const denied = await app.inject("/before");
    assert.equal(denied.statusCode, 429);
    assert.match(denied.headers["content-type"], /^application\/problem\+json\b/);
    assert.deepEqual(await statuses(app, "/after", 1), [429]);
    assert.deepEqual(await statuses(app, "/missing", 1), [429]);
  });

test("a plugin limits its instance and those inside it, not those beside it", async () => {
  const app = Fastify();
  app.register(async (limited) => {
    limited.register(rateLimit, { policy });
    limited.get("/limited", hello);
    limited.register(async (inside) => inside.get("/inside", hello));
  });
  app.register(async (beside) => beside.get("/beside", hello));
  app.get("/", hello);
  assert.deepEqual(await statuses(app, "/limited", 1), [200]);
  assert.deepEqual(await statuses(app, "/inside"), [200, 429, 429]);
  assert.deepEqual(await statuses(app, "/beside"), [200, 200, 200]);
  assert.deepEqual(await statuses(app, "/"), [200, 200, 200]);
  const { headers } = await app.inject("/beside");
  assert.equal(headers.ratelimit, undefined);
});

test("a plugin inside another adds its limit", async () => {
  const outer = limiterOf(policyOf(9, "outer"));
  const app = Fastify();
  app.register(rateLimit, { limiter: outer, key: () => "all" });
  app.register(async (inside) => {
    inside.register(rateLimit, { limiter: limiterOf(policyOf(1, "inner")), key: () => "all" });
    inside.get("/inside", hello);
  });
  app.get("/", hello);
  const { headers } = await app.inject("/inside");
  assert.equal(headers["ratelimit-policy"], '"outer";q=9;w=60, "inner";q=1;w=60');
  assert.deepEqual(await statuses(app, "/inside", 1), [429]);
  assert.deepEqual(await statuses(app, "/"), [200, 200, 200]);
  assert.equal(outer.get("all"), 5);
});

test("a route has options of its own, or no limit", async () => {
  const app = Fastify();
  app.register(rateLimit, { policy, headers: "legacy", key: ({ headers }) => headers["x-user"] ?? "nobody" });
  app.get("/", hello);
  app.get("/free", { config: { rateLimit: false } }, hello);
  app.get("/own", { config: { rateLimit: { policy: policyOf(1, "own") } } }, hello);
  app.get("/dear", { config: { rateLimit: { cost: 2 } } }, hello);
  assert.deepEqual(await statuses(app, "/free"), [200, 200, 200]);
  const own = await app.inject("/own");
  assert.equal(own.headers["ratelimit-policy"], '"own";q=1;w=60');
  // Options that the route does not have are the plugin's.
  assert.equal(own.headers["x-ratelimit-limit"], "1");
  assert.deepEqual(await statuses(app, "/own", 1), [429]);
  assert.deepEqual(await statuses(app, "/own", 2, { headers: { "x-user": "ann" } }), [200, 429]);
  assert.deepEqual(await statuses(app, "/dear", 2), [200, 429]);
  // Each route with options has a limiter in memory of its own.
  assert.deepEqual(await statuses(app, "/"), [200, 200, 429]);
});

test("a route's options apply once, however many plugins surround it", async () => {
  const limiter = limiterOf(policyOf(9));
  const app = Fastify();
  app.register(rateLimit, { policy, key: () => "all" });
  app.register(async (inside) => {
    inside.register(rateLimit, { policy, key: () => "all" });
    inside.get("/own", { config: { rateLimit: { limiter, cost: 2 } } }, hello);
    inside.get("/free", { config: { rateLimit: false } }, hello);
  });
  await app.inject("/own");
  assert.equal(limiter.get("all"), 2);
  assert.deepEqual(await statuses(app, "/free"), [200, 200, 200]);
});

test("a route's options are completed by the innermost plugin alone", async () => {
  const app = Fastify();
  app.register(rateLimit, { global: false });
  app.register(async (inside) => {
    await inside.register(rateLimit, { policy });
    inside.get("/", { config: { rateLimit: { cost: 2 } } }, hello);
  });
  assert.deepEqual(await statuses(app, "/", 2), [200, 429]);
});

test("global: false limits routes with options alone", async () => {
  for (const add of [
    (app) => app.register(rateLimit, { global: false, policy, headers: "legacy" }),
    (app) => app.register(rateLimit({ global: false, policy, headers: "legacy" })),
  ]) {
    const app = Fastify();
    add(app);
    app.get("/", hello);
    app.get("/limited", { config: { rateLimit: {} } }, hello);
    assert.deepEqual(await statuses(app, "/"), [200, 200, 200]);
    assert.deepEqual(await statuses(app, "/limited"), [200, 200, 429]);
  }
});

test("hook: preHandler has the body", async () => {
  const app = Fastify();
  app.register(rateLimit, { policy: policyOf(1), hook: "preHandler", key: ({ body }) => body.email });
  app.post("/login", hello);
  const login = (email) => app.inject({ method: "POST", url: "/login", payload: { email } });
  assert.equal((await login("ann@example.com")).statusCode, 200);
  assert.equal((await login("bob@example.com")).statusCode, 200);
  assert.equal((await login("ann@example.com")).statusCode, 429);
});

test("app.rateLimit() is a hook with the plugin's options, and request.rateLimit the decision", async () => {
  const app = Fastify();
  await app.register(rateLimit, { global: false, policy, headers: "legacy" });
  const decisions = [];
  const handler = async (request) => decisions.push(request.rateLimit);
  app.get("/", handler);
  app.get("/hooked", { onRequest: app.rateLimit({ policy: policyOf(1, "hooked") }) }, handler);
  app.get("/same", { preHandler: [app.rateLimit()] }, handler);
  await app.inject("/");
  const hooked = await app.inject("/hooked");
  assert.equal(hooked.headers["x-ratelimit-limit"], "1");
  assert.deepEqual(await statuses(app, "/hooked", 1), [429]);
  assert.deepEqual(await statuses(app, "/same"), [200, 200, 429]);
  assert.equal(decisions[0], undefined);
  assert.deepEqual(
    decisions.slice(1).map(({ allowed, limit, remaining }) => [allowed, limit, remaining]),
    [
      [true, 1, 0],
      [true, 2, 1],
      [true, 2, 0],
    ],
  );
});

test("the decision is there for onDenied and for later hooks of a request that goes on although denied", async () => {
  const seen = [];
  const app = Fastify();
  app.register(rateLimit, { policy: policyOf(1), onDenied: "allow" });
  app.addHook("onResponse", async ({ rateLimit }) => seen.push(rateLimit.allowed));
  app.get("/", hello);
  assert.deepEqual(await statuses(app, "/", 2), [200, 200]);
  assert.deepEqual(seen, [true, false]);
});

test("failures only: a success is given back", async () => {
  const app = Fastify();
  app.register(rateLimit, { global: false });
  const options = { policy: policyOf(2), charge: "failures", key: () => "ann" };
  app.get("/:status", { config: { rateLimit: options } }, async ({ params }, reply) =>
    reply.code(Number(params.status)).send(""),
  );
  assert.deepEqual(await statuses(app, "/200"), [200, 200, 200]);
  assert.deepEqual(await statuses(app, "/401"), [401, 401, 429]);
});

test("a wrong option fails the start with an error that names it, and does not end the process", async () => {
  const failures = [
    [(app) => app.register(rateLimit), /^policy: undefined is not accepted/],
    [(app) => app.register(rateLimit, { max: 3 }), /^options: "max" is not accepted; use policy: /],
    [
      (app) => app.register(rateLimit, { policy, hook: "onSend" }),
      /^hook: "onSend" is not accepted; use one of /,
    ],
    [
      (app) => app.register(rateLimit, { policy, global: "no" }),
      /^global: "no" is not accepted; use true or false/,
    ],
    [(app) => app.register(rateLimit({ policy }), { charge: "some" }), /^charge: "some" is not accepted/],
  ];
  for (const [add, message] of failures) {
    const app = Fastify();
    add(app);
    await assert.rejects(
      app.ready(),
      (error) => error instanceof TollgateError && message.test(error.message),
    );
  }
});

test("a wrong option of a route is an error where the route is added, and otherwise of the plugin", async () => {
  const wrong = [
    [{ max: 3 }, /^options: "max" is not accepted/],
    [{ hook: "preHandler" }, /^options: "hook" is not accepted/],
    ["10/1m", /^config\.rateLimit: "10\/1m" is not accepted; use false, or options such as \{ policy \}/],
    [null, /^config\.rateLimit: null is not accepted/],
  ];
  for (const [own, message] of wrong) {
    const error = { code: "invalid_option", message };
    const options = { config: { rateLimit: own } };
    const app = Fastify();
    await app.register(rateLimit, { policy });
    assert.throws(() => app.get("/after", options, hello), error);
    const late = Fastify();
    late.get("/before", options, hello);
    await assert.rejects(async () => late.register(rateLimit, { policy }), error);
  }
});

test("a route's policy beside a limiter with policies of its own is an error", async () => {
  const app = Fastify();
  await app.register(rateLimit, { limiter: limiterOf(policy) });
  const own = { config: { rateLimit: { policy: policyOf(1) } } };
  assert.throws(
    () => app.get("/", own, hello),
    /^TollgateError: policy is not accepted beside the limiter of all routes; use limiter: a limiter with the route's policy/,
  );
  const both = { config: { rateLimit: { limiter: limiterOf(policyOf(1)) } } };
  app.get("/", both, hello);
  assert.deepEqual(await statuses(app, "/", 2), [200, 429]);
});

test("rateLimit with global: false is a plugin, not a hook", async () => {
  const app = Fastify();
  app.addHook("onRequest", rateLimit({ global: false, policy }));
  app.get("/", hello);
  const { statusCode, body } = await app.inject("/");
  assert.equal(statusCode, 500);
  assert.match(body, /use it with app\.register/);
});

test("plugins that depend on it find it by its name", async () => {
  const app = Fastify();
  app.register(rateLimit, { policy });
  const dependent = async (instance) => instance.get("/", hello);
  dependent[Symbol.for("plugin-meta")] = { name: "dependent", dependencies: ["tollgate"] };
  dependent[Symbol.for("skip-override")] = true;
  app.register(dependent);
  assert.deepEqual(await statuses(app, "/"), [200, 200, 429]);
});

test("a wrong option of a route ends the start, also if the plugin is not awaited", async () => {
  const wrong = { windowMs: 60_000 };
  const apps = {
    "in the app": (app) => {
      app.register(rateLimit, { policy });
      app.get("/", { config: { rateLimit: wrong } }, hello);
    },
    "by a function": (app) => {
      app.register(rateLimit({ policy }));
      app.get("/", { config: { rateLimit: wrong } }, hello);
    },
    "in a plugin": (app) => {
      app.register((inside, _options, done) => {
        inside.register(rateLimit, { policy });
        inside.get("/", { config: { rateLimit: wrong } }, hello);
        done();
      });
    },
    "around a plugin": (app) => {
      app.register(rateLimit, { policy });
      app.register(async (inside) => inside.get("/", { config: { rateLimit: wrong } }, hello));
    },
  };
  for (const [place, build] of Object.entries(apps)) {
    const app = Fastify();
    build(app);
    const message = /^options: "windowMs" is not accepted/;
    await assert.rejects(async () => app.ready(), { code: "invalid_option", message }, place);
  }
});

test("the options of routes outside a plugin are not its own to check", async () => {
  const app = Fastify();
  app.get("/", { config: { rateLimit: { max: 5 } } }, hello);
  app.register(async (inside) => {
    inside.register(rateLimit, { policy });
    inside.get("/in", { config: { rateLimit: { cost: 2 } } }, hello);
  });
  assert.deepEqual(await statuses(app, "/in"), [200, 429, 429]);
});
