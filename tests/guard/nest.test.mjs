// The guard and the decorator for NestJS limit a real app: globally, by controller and handler, with its filters.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { mock } from "node:test";
import {
  Catch,
  Controller,
  ForbiddenException,
  Get,
  HttpCode,
  HttpException,
  Module,
  UnauthorizedException,
  UseGuards,
} from "@nestjs/common";
import { APP_FILTER, APP_GUARD, NestFactory } from "@nestjs/core";
import Fastify from "fastify";
import { RateLimit, RateLimitException, RateLimitGuard } from "tollgate/nest";
import { ask, limitFields } from "./lib/client.mjs";
import { listening } from "./lib/frameworks.mjs";
import { limiterOf, policyOf } from "./lib/limits.mjs";

mock.method(console, "warn", () => {});

/** Returns a controller of these handlers by path; each is a function, or a list of its decorators and the function. */
function controllerOf(path, handlers, Base = Object) {
  class AppController extends Base {}
  const { prototype } = AppController;
  for (const [name, handler] of Object.entries(handlers)) {
    const [work, ...decorators] = [handler].flat().reverse();
    // A function of its own, since decorators put their metadata on it.
    const { [name]: value } = { [name]: () => work() };
    Object.defineProperty(prototype, name, { value, configurable: true, writable: true });
    for (const decorate of [Get(name), ...decorators])
      decorate(prototype, name, Object.getOwnPropertyDescriptor(prototype, name));
  }
  Controller(path)(AppController);
  return AppController;
}

/** Serves an app until the test ends, and returns its address. */
async function serve(t, { guard, controllers, providers = [] }) {
  class AppModule {}
  const all = guard === undefined ? providers : [...providers, { provide: APP_GUARD, useValue: guard }];
  Module({ controllers, providers: all })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: false });
  await app.init();
  t.after(() => app.close());
  return listening(t, app.getHttpServer());
}

const hello = () => "Hello";
const statuses = async (url, count) => {
  const found = [];
  for (let index = 0; index < count; index += 1) found.push((await ask(url)).status);
  return found;
};

test("the guard of an app limits by address, with headers and a problem", async (t) => {
  const guard = new RateLimitGuard({ limiter: limiterOf(policyOf(2)), headers: "legacy" });
  const url = await serve(t, { guard, controllers: [controllerOf("", { one: hello, two: hello })] });
  const first = await ask(`${url}/one`);
  assert.deepEqual([first.status, first.body], [200, "Hello"]);
  assert.deepEqual(limitFields(first), { "ratelimit-policy": '"api";q=2;w=60', ratelimit: '"api";r=1;t=60' });
  assert.equal((await ask(`${url}/two`)).headers["x-ratelimit-remaining"], "0");

  const denied = await ask(`${url}/one`);
  assert.equal(denied.status, 429);
  assert.equal(limitFields(denied)["retry-after"], "60");
  assert.match(denied.headers["content-type"], /^application\/problem\+json/);
  assert.equal(denied.headers["cache-control"], "no-store");
  const { type, ...problem } = JSON.parse(denied.body);
  assert.match(type, /#quota-exceeded$/);
  assert.deepEqual(problem, {
    title: "Request cannot be satisfied as assigned quota has been exceeded",
    status: 429,
    "violated-policies": ["api"],
  });
});

test("@RateLimit replaces options of the guard, of a handler before those of its controller", async (t) => {
  const guard = new RateLimitGuard({ policy: policyOf(2), key: () => "everyone" });
  const Inner = controllerOf("inner", {
    own: [RateLimit({ policy: policyOf(1, "own") }), hello],
    off: [RateLimit(false), hello],
    plain: hello,
  });
  RateLimit({ policy: policyOf(3, "inner") })(Inner);
  const Outer = controllerOf("outer", { plain: hello });
  const Heir = controllerOf("heir", { other: hello }, Inner);
  const url = await serve(t, { guard, controllers: [Inner, Outer, Heir] });

  assert.deepEqual(await statuses(`${url}/inner/own`, 2), [200, 429]);
  assert.deepEqual(await statuses(`${url}/inner/plain`, 4), [200, 200, 200, 429]);
  assert.deepEqual(await statuses(`${url}/heir/other`, 1), [429]);
  assert.deepEqual(await statuses(`${url}/outer/plain`, 3), [200, 200, 429]);
  assert.deepEqual(await statuses(`${url}/inner/off`, 9), new Array(9).fill(200));
  assert.deepEqual(limitFields(await ask(`${url}/inner/off`)), {});
});

test("a guard of a handler limits it alone, and several add up", async (t) => {
  const guards = [3, 1].map(
    (limit) => new RateLimitGuard({ limiter: limiterOf(policyOf(limit, `of${limit}`)) }),
  );
  const controllers = [controllerOf("", { both: [UseGuards(...guards), hello], free: hello })];
  const url = await serve(t, { controllers });
  assert.equal((await ask(`${url}/both`)).headers.ratelimit, '"of3";r=2;t=60, "of1";r=0;t=60');
  assert.equal((await ask(`${url}/both`)).status, 429);
  assert.deepEqual(limitFields(await ask(`${url}/free`)), {});
});

test("failures are charged, successes are not; a function charges by the response", async (t) => {
  const limiter = limiterOf(policyOf(2));
  let isRight = true;
  const login = () => {
    if (!isRight) throw new UnauthorizedException();
    return "Welcome";
  };
  const guard = new RateLimitGuard({ limiter, key: () => "login" });
  const byStatus = { charge: ({ statusCode }) => (statusCode === 202 ? 2 : 0), cost: 2, key: () => "status" };
  const controllers = [
    controllerOf("", {
      login: [RateLimit({ charge: "failures" }), login],
      accepted: [RateLimit(byStatus), HttpCode(202), hello],
      fine: [RateLimit(byStatus), hello],
    }),
  ];
  const url = await serve(t, { guard, controllers });
  assert.deepEqual(await statuses(`${url}/login`, 3), [200, 200, 200]);
  assert.equal(limiter.get("login"), 0);
  isRight = false;
  assert.deepEqual(await statuses(`${url}/login`, 3), [401, 401, 429]);

  assert.deepEqual(await statuses(`${url}/fine`, 3), [200, 200, 200]);
  assert.deepEqual(await statuses(`${url}/accepted`, 2), [202, 429]);
});

test("a filter gets the exception with its decision, and onDenied returns another", async (t) => {
  class Filter {
    catch(exception, host) {
      const { retryAfter, policy } = exception.decision;
      host.switchToHttp().getResponse().status(420).json({ retryAfter, policy });
    }
  }
  Catch(RateLimitException)(Filter);
  const guard = new RateLimitGuard({ limiter: limiterOf(policyOf(1)) });
  const own = RateLimit({
    onDenied: ({ remaining }, context) =>
      new ForbiddenException(`${remaining} left for ${context.getHandler().name}`),
  });
  const nothing = RateLimit({ onDenied: () => {} });
  const controllers = [controllerOf("", { plain: hello, own: [own, hello], nothing: [nothing, hello] })];
  const url = await serve(t, { guard, controllers, providers: [{ provide: APP_FILTER, useClass: Filter }] });
  await ask(`${url}/plain`);
  const filtered = await ask(`${url}/plain`);
  assert.deepEqual(
    [filtered.status, JSON.parse(filtered.body)],
    [420, { retryAfter: 60_000, policy: "api" }],
  );
  const denied = await ask(`${url}/own`);
  assert.deepEqual([denied.status, JSON.parse(denied.body).message], [403, "0 left for own"]);
  assert.equal((await ask(`${url}/nothing`)).status, 420);
  assert.ok(new RateLimitException({}, 429) instanceof HttpException);
});

test("a limiter that fails is onError's", async (t) => {
  const limiter = { hit: () => Promise.reject(new Error("down")) };
  const guard = new RateLimitGuard({ limiter, policy: policyOf(1) });
  const deny = RateLimit({ onError: "deny" });
  const url = await serve(t, {
    guard,
    controllers: [controllerOf("", { allow: hello, deny: [deny, hello] })],
  });
  assert.equal((await ask(`${url}/allow`)).status, 200);
  const denied = await ask(`${url}/deny`);
  assert.deepEqual([denied.status, denied.headers["retry-after"]], [503, "1"]);
  assert.equal(JSON.parse(denied.body).title, "The rate limiter did not respond");
});

test("of a load at once exactly the limit passes", async (t) => {
  const guard = new RateLimitGuard({ policy: policyOf(7) });
  const url = await serve(t, { guard, controllers: [controllerOf("", { hello })] });
  const responses = await Promise.all(Array.from({ length: 100 }, () => ask(`${url}/hello`)));
  assert.equal(responses.filter(({ status }) => status === 200).length, 7);
});

/** A context as Nest makes it, over these arguments of a handler. */
const contextOf = (kind, args, handler = hello) => ({
  getType: () => kind,
  getHandler: () => handler,
  getClass: () => Object,
  getArgByIndex: (index) => args[index],
  switchToHttp: () => ({ getRequest: () => args[0], getResponse: () => args[1] }),
});

test("a setting that lets clients name their address is warned of, over Express and Fastify", async (t) => {
  const { warn } = console;
  const forwarded = { headers: { "X-Forwarded-For": "192.0.2.1" } };
  const guard = new RateLimitGuard({ limiter: limiterOf(policyOf(9)) });
  class AppModule {}
  Module({
    controllers: [controllerOf("", { hello })],
    providers: [{ provide: APP_GUARD, useValue: guard }],
  })(AppModule);
  const nest = await NestFactory.create(AppModule, { logger: false });
  nest.set("trust proxy", true);
  await nest.init();
  t.after(() => nest.close());
  const fastify = Fastify({ trustProxy: true });
  fastify.get("/hello", async (request, reply) => {
    await guard.canActivate(contextOf("http", [request, reply]));
    return "Hello";
  });
  await fastify.ready();
  for (const [server, text] of [
    [nest.getHttpServer(), /"trust proxy": true takes the address that a client names/],
    [fastify.server, /trustProxy: true takes the address that a client names/],
  ]) {
    warn.mock.resetCalls();
    assert.equal((await ask(`${await listening(t, server)}/hello`, forwarded)).status, 200);
    assert.match(warn.mock.calls[0].arguments[0], text);
  }
});

test("several guards have names, by which decorators choose one", async (t) => {
  const key = () => "all";
  const burst = new RateLimitGuard({ limiter: limiterOf(policyOf(2, "burst")), key }, "burst");
  const daily = new RateLimitGuard({ limiter: limiterOf(policyOf(9, "daily")), key }, "daily");
  const providers = [burst, daily].map((useValue) => ({ provide: APP_GUARD, useValue }));
  const controller = controllerOf("", {
    hello,
    free: [RateLimit(false, "burst"), hello],
    dear: [RateLimit({ cost: 5 }, "daily"), RateLimit(false, "burst"), hello],
    // Of no guard that there is.
    other: [RateLimit(false), hello],
  });
  const url = await serve(t, { controllers: [controller], providers });
  const { headers } = await ask(`${url}/hello`);
  assert.equal(headers["ratelimit-policy"], '"burst";q=2;w=60, "daily";q=9;w=60');
  assert.deepEqual(await statuses(`${url}/free`, 2), [200, 200]);
  assert.deepEqual(await statuses(`${url}/other`, 2), [200, 429]);
  assert.deepEqual(await statuses(`${url}/dear`, 2), [200, 429]);
  assert.throws(() => RateLimit(false, 5), { message: /^name: 5 is not accepted/ });
  assert.throws(() => new RateLimitGuard({ policy: policyOf(1) }, null), { message: /^name: null/ });
});

test("the replies of Fastify get the headers and settle the charge", async (t) => {
  const limiter = limiterOf(policyOf(1));
  const guard = new RateLimitGuard({ limiter, charge: "failures", key: () => "a" });
  const app = Fastify();
  // As Nest calls guards, and passes their exceptions to its filter, whose response is that of @nestjs/platform-fastify.
  app.addHook("preHandler", async (request, reply) => {
    try {
      await guard.canActivate(contextOf("http", [request, reply]));
    } catch (error) {
      return reply.code(error.getStatus()).send(error.getResponse());
    }
  });
  app.get("/:status", (request, reply) => reply.code(request.params.status).send("Hello"));
  await app.ready();
  const url = await listening(t, app.server);
  // Until it ends, a reservation may still be charged.
  assert.equal((await ask(`${url}/200`)).headers.ratelimit, '"api";r=0;t=120');
  assert.equal(limiter.get("a"), 0);
  assert.equal((await ask(`${url}/404`)).status, 404);
  const denied = await ask(`${url}/200`);
  assert.deepEqual([denied.status, denied.headers["retry-after"]], [429, "60"]);
  assert.match(denied.headers["content-type"], /^application\/problem\+json/);
  assert.deepEqual(JSON.parse(denied.body)["violated-policies"], ["api"]);
});

test("a resolver of GraphQL is limited by the request of its context", async (t) => {
  const guard = new RateLimitGuard({ limiter: limiterOf(policyOf(1)) });
  const server = createServer(async (req, res) => {
    try {
      req.ip = req.socket.remoteAddress;
      await guard.canActivate(contextOf("graphql", [undefined, {}, { req, res }, {}]));
      res.end("{}");
    } catch (error) {
      res.writeHead(error.getStatus()).end(JSON.stringify(error.getResponse()));
    }
  });
  const url = await listening(t, server);
  assert.deepEqual(await statuses(url, 2), [200, 429]);
});

test("wrong options, and calls that are not of HTTP, are errors that say what to do", async () => {
  assert.throws(() => new RateLimitGuard({ windowMs: 1 }), { code: "invalid_option", message: /"windowMs"/ });
  assert.throws(() => RateLimit(5), {
    code: "invalid_option",
    message: /^RateLimit: 5 is not accepted; use false/,
  });
  // When a class is defined, and not by its first request.
  for (const [options, message] of [
    [{ windowMs: 60_000 }, /"windowMs" is not accepted; use policy: /],
    [{ charge: "some" }, /^charge: "some" is not accepted; use "all", "failures"/],
    [{ policy: { algorithm: "fix_window", limit: -1, scale: "1m" } }, /limit/],
    [{ policy: policyOf(1), ban: 5 }, /^ban: 5 is not accepted/],
  ])
    assert.throws(() => RateLimit(options), { name: "TollgateError", message });
  const guard = new RateLimitGuard({ limiter: limiterOf(policyOf(1)) });
  await assert.rejects(guard.canActivate(contextOf("rpc", [{}, {}])), {
    code: "invalid_option",
    message: /^RateLimitGuard is not accepted in a call of rpc; use @RateLimit\(false\)/,
  });
  const off = () => {};
  RateLimit(false)(off);
  assert.equal(await guard.canActivate(contextOf("rpc", [{}, {}], off)), true);
  const other = () => {};
  RateLimit({ policy: policyOf(2) })(other);
  await assert.rejects(guard.canActivate(contextOf("http", [{}, {}], other)), {
    message: /^policy is not accepted beside the limiter of all routes; use limiter: /,
  });
});
