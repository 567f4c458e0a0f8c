// The stores under the rate limiters they are for, with real servers.

import "reflect-metadata";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { describe, mock } from "node:test";
import fastifyRateLimit from "@fastify/rate-limit";
import { getRequestListener } from "@hono/node-server";
import { Controller, Get, Module, UseGuards } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ThrottlerGuard, ThrottlerModule } from "@nestjs/throttler";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import Fastify from "fastify";
import { Hono } from "hono";
import { rateLimiter as honoRateLimiter } from "hono-rate-limiter";
import { RateLimiter } from "tollgate";
import { ExpressStore, FastifyStore, HonoStore, NestStorage } from "tollgate/stores";
import { ask } from "../guard/lib/client.mjs";
import { listening } from "../guard/lib/frameworks.mjs";
import { promised, start } from "../guard/lib/limits.mjs";

// express-rate-limit warns of a limit of 0, which is on purpose here.
mock.method(console, "warn", () => {});
mock.method(console, "error", () => {});

/** Time stands still from here on, and is set. Limiters that are made before keep the clock they found. */
function withClock(t) {
  mock.timers.enable({ apis: ["Date"], now: start });
  t.after(() => mock.timers.reset());
}

/** The same methods over promises, as a limiter elsewhere has them. */
const remote = (limiter) => ({
  policies: limiter.policies,
  hit: async (...args) => limiter.hit(...args),
  peek: async (...args) => limiter.peek(...args),
  inc: async (...args) => limiter.inc(...args),
  set: async (...args) => limiter.set(...args),
  reset: async (...args) => limiter.reset(...args),
});

/** Durable Objects, as a namespace has them. */
function namespace() {
  const limiters = new Map();
  const limiterOf = (policy) => {
    const id = JSON.stringify(policy);
    if (!limiters.has(id)) limiters.set(id, new RateLimiter(policy));
    return limiters.get(id);
  };
  const method =
    (name, key) =>
    async (policy, ...args) =>
      limiterOf(policy)[name](key, ...args);
  const getByName = (key) =>
    Object.fromEntries(["hit", "peek", "inc", "set", "reset"].map((name) => [name, method(name, key)]));
  return { getByName };
}

const limit = 3;
const policies = {
  fix_window_per_key: { algorithm: "fix_window_per_key", limit, scale: "1m" },
  sliding_window: { algorithm: "sliding_window", limit, scale: "1m" },
  sliding_counter: { algorithm: "sliding_counter", limit, scale: "1m" },
  token_bucket: { algorithm: "token_bucket", capacity: limit, refillRate: limit, per: "1m" },
  leaky_bucket: { algorithm: "leaky_bucket", capacity: limit, leakRate: limit, per: "1m" },
};

/** What the older headers say: limit, remaining and reset. */
const olderFields = ({ headers }) =>
  ["limit", "remaining", "reset"].map((name) => headers[`x-ratelimit-${name}`]);

/** How many of a load at once pass. */
async function passed(url, count = 20, headers = {}) {
  const responses = await Promise.all(Array.from({ length: count }, () => ask(url, { headers })));
  return responses.filter(({ status }) => status === 200).length;
}

/** The stores that count the hits of a limiter which decides by itself, and an app of each. */
const counting = {
  ExpressStore: {
    Store: ExpressStore,
    serve: (t, options, handle = () => {}) => {
      const app = express();
      app.use(
        expressRateLimit({
          windowMs: 60_000,
          limit,
          standardHeaders: "draft-6",
          legacyHeaders: false,
          ...options,
        }),
      );
      app.get("/{*rest}", async (request, response) => {
        await handle();
        response.status(Number(request.get("X-Status") ?? 200)).end();
      });
      return listening(t, createServer(app));
    },
  },
  HonoStore: {
    Store: HonoStore,
    serve: (t, options, handle = () => {}) => {
      const app = new Hono();
      app.use(honoRateLimiter({ windowMs: 60_000, limit, keyGenerator: () => "all", ...options }));
      app.get("*", async (c) => {
        await handle();
        return c.body(null, Number(c.req.header("X-Status") ?? 200));
      });
      return listening(t, createServer(getRequestListener(app.fetch)));
    },
  },
};

for (const [name, { Store, serve }] of Object.entries(counting)) {
  describe(name, () => {
    for (const [algorithm, policy] of Object.entries(policies))
      for (const kind of ["in memory", "elsewhere", "objects"])
        test(`${algorithm}, ${kind}: exactly the limit passes, and the headers are those of the decision`, async (t) => {
          withClock(t);
          const limiter = new RateLimiter(policy);
          const store =
            kind === "objects"
              ? new Store(namespace(), { policy })
              : new Store(kind === "elsewhere" ? remote(limiter) : limiter);
          const url = await serve(t, { store });
          const first = await ask(url);
          assert.deepEqual(
            [first.status, first.headers["ratelimit-limit"], first.headers["ratelimit-remaining"]],
            [200, "3", "2"],
          );
          assert.equal(await passed(url), 2);
          const denied = await ask(url);
          assert.equal(denied.status, 429);
          assert.equal(denied.headers["ratelimit-remaining"], "0");
          // A bucket lets the next one through when a third of it is back.
          const wait = algorithm.endsWith("bucket") ? 20_000 : undefined;
          if (wait === undefined) return;
          assert.equal(denied.headers["retry-after"], "20");
          mock.timers.setTime(start + wait - 1);
          assert.equal((await ask(url)).status, 429);
          mock.timers.setTime(start + wait);
          assert.equal((await ask(url)).status, 200);
        });

    test("without a limiter it counts by the rate limiter's own numbers", async (t) => {
      withClock(t);
      const url = await serve(t, { store: new Store() });
      assert.equal(await passed(url), 3);
      mock.timers.setTime(start + 59_999);
      assert.equal(await passed(url), 0);
      mock.timers.setTime(start + 60_000);
      assert.equal(await passed(url), 3);
    });

    test("limits by request, also 0", async (t) => {
      const byRequest = (request) =>
        Number((request.req?.header ?? request.get).call(request.req ?? request, "X-Limit"));
      const url = await serve(t, { store: new Store(), limit: byRequest });
      assert.equal(await passed(url, 9, { "X-Limit": "4" }), 4);
      assert.equal(await passed(url, 9, { "X-Limit": "20" }), 9);
      assert.equal(await passed(url, 9, { "X-Limit": "0" }), 0);
      assert.equal(await passed(await serve(t, { store: new Store(), limit: 0 }), 3), 0);
    });

    test("a denial denies, though the limit depends on the request", async (t) => {
      const limiter = new RateLimiter(policies.token_bucket);
      const url = await serve(t, { store: new Store(limiter), limit: () => 100 });
      assert.equal(await passed(url), 3);
    });

    test("init rejects another limit than the limiter's", () => {
      const store = new Store(new RateLimiter(policies.token_bucket));
      assert.throws(() => store.init({ windowMs: 60_000, limit: 4 }), {
        code: "invalid_option",
        message: "limit: 4 is not accepted; use 3, which is the limit of the store's limiter",
      });
      store.init({ windowMs: 60_000, limit: 3 });
      store.init({ windowMs: 60_000, limit: () => 4 });
    });

    test("get, resetKey and resetAll", async (t) => {
      withClock(t);
      const store = new Store();
      store.init({ windowMs: 60_000, limit });
      assert.equal(await store.get("a"), undefined);
      const counted = { totalHits: 1, resetTime: new Date(start + 60_000) };
      assert.deepEqual(await store.increment("a"), counted);
      assert.deepEqual(await store.get("a"), counted);
      await store.increment("b");
      await store.resetKey("a");
      assert.equal(await store.get("a"), undefined);
      assert.equal((await store.get("b")).totalHits, 1);
      await store.resetAll();
      assert.equal(await store.get("b"), undefined);
      assert.throws(() => new Store(new RateLimiter(policies.sliding_window)).resetAll(), {
        code: "invalid_option",
      });
    });

    for (const kind of ["in memory", "elsewhere"])
      test(`a skipped request is refunded, ${kind}`, async (t) => {
        const limiter = new RateLimiter(policies.sliding_window);
        const store = new Store(kind === "elsewhere" ? remote(limiter) : limiter);
        const url = await serve(t, { store, skipSuccessfulRequests: true });
        for (let tries = 0; tries < 10; tries += 1) assert.equal((await ask(url)).status, 200);
        const failing = { headers: { "X-Status": "401" } };
        const statuses = [];
        for (let tries = 0; tries < 5; tries += 1) statuses.push((await ask(url, failing)).status);
        assert.deepEqual(statuses, [401, 401, 401, 429, 429]);
      });

    for (const kind of ["its own store", "ours"])
      for (const [skip, status] of [
        ["skipSuccessfulRequests", 200],
        ["skipSuccessfulRequests", 401],
        ["skipFailedRequests", 200],
        ["skipFailedRequests", 401],
      ])
        test(`of 100 requests at once with ${skip} and the status ${status}, three are handled: ${kind}`, async (t) => {
          withClock(t);
          const gate = promised();
          let handled = 0;
          const store = kind === "ours" ? { store: new Store() } : {};
          const url = await serve(t, { [skip]: true, ...store }, async () => {
            handled += 1;
            await gate.promise;
          });
          let denied = 0;
          const send = async () => {
            const response = await ask(url, { headers: { "X-Status": String(status) } });
            if (response.status === 429) denied += 1;
            if (denied === 97) gate.resolve();
            return response.status;
          };
          const statuses = await Promise.all(Array.from({ length: 100 }, send));
          assert.equal(handled, limit);
          assert.equal(statuses.filter((each) => each === status).length, limit);
        });

    test("a denied hit that was not charged is not taken back", async (t) => {
      for (const policy of [policies.sliding_window, policies.token_bucket]) {
        for (const skip of ["skipFailedRequests", "skipSuccessfulRequests"]) {
          const url = await serve(t, { store: new Store(new RateLimiter(policy)), [skip]: true });
          const counted = { headers: { "X-Status": skip === "skipFailedRequests" ? "200" : "401" } };
          const statuses = [];
          for (let tries = 0; tries < 9; tries += 1) statuses.push((await ask(url, counted)).status);
          assert.deepEqual(statuses.slice(limit), Array(9 - limit).fill(429), `${skip}: ${statuses}`);
        }
      }
    });

    test("decrement takes a hit back, and never more than there are", async () => {
      const store = new Store();
      store.init({ windowMs: 60_000, limit });
      await store.increment("a");
      await store.increment("a");
      await store.decrement("a");
      assert.equal((await store.increment("a")).totalHits, 2);
      for (let times = 0; times < 5; times += 1) await store.decrement("a");
      assert.equal((await store.increment("a")).totalHits, 1);
    });

    test("hits go on being counted after the limit", async () => {
      const store = new Store();
      store.init({ windowMs: 60_000, limit });
      const seen = [];
      for (let hits = 0; hits < 6; hits += 1) seen.push((await store.increment("a")).totalHits);
      assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
    });

    test("several stores on one limiter are separated by their prefix", async () => {
      const limiter = new RateLimiter(policies.sliding_window);
      const [one, other] = ["one:", "other:"].map((prefix) => new Store(limiter, { prefix }));
      assert.deepEqual(
        [one.prefix, one.localKeys, new Store(remote(limiter)).localKeys],
        ["one:", true, false],
      );
      one.increment("a");
      assert.equal(other.get("a"), undefined);
      assert.equal(one.get("a").totalHits, 1);
      assert.equal(limiter.get("one:a"), 1);
    });

    test("a value that is not a limiter is rejected", () => {
      for (const limiter of [{}, 1, "redis"])
        assert.throws(() => new Store(limiter), { code: "invalid_option", message: /^limiter: / });
      assert.throws(() => new Store(namespace()), { code: "invalid_option", message: /^policy: / });
      assert.throws(() => new Store().increment("a"), {
        code: "invalid_option",
        message: /^store: "before init"/,
      });
    });
  });
}

describe("FastifyStore", () => {
  async function serve(t, options, route = {}) {
    const app = Fastify();
    await app.register(fastifyRateLimit, {
      max: limit,
      timeWindow: 60_000,
      keyGenerator: () => "all",
      ...options,
    });
    app.get("/", async () => "Hello");
    app.get("/route", { config: route }, async () => "Hello");
    app.get("/read", { config: { rateLimit: false } }, async (request) =>
      app.createRateLimit()(request, { increment: false }),
    );
    await app.ready();
    return listening(t, app.server);
  }

  for (const [kind, store] of Object.entries({
    "in memory": () => FastifyStore,
    "a sliding window": () => FastifyStore.over(undefined, "sliding_window"),
    elsewhere: () => FastifyStore.over((policy) => remote(new RateLimiter(policy))),
    objects: () => FastifyStore.over(namespace()),
  }))
    test(`${kind}: exactly the limit passes, until the window ends`, async (t) => {
      withClock(t);
      const url = await serve(t, { store: store() });
      const first = await ask(url);
      assert.deepEqual(olderFields(first), ["3", "2", "60"]);
      assert.equal(await passed(url), 2);
      mock.timers.setTime(start + 59_999);
      const denied = await ask(url);
      assert.deepEqual([denied.status, denied.headers["retry-after"]], [429, "1"]);
      mock.timers.setTime(start + 60_000);
      assert.equal((await ask(url)).status, 200);
    });

  test("a route with options of its own has a budget of its own", async (t) => {
    for (const max of [limit, 5]) {
      const url = await serve(t, { store: FastifyStore }, { rateLimit: { max, timeWindow: "1m" } });
      assert.equal(await passed(`${url}/`), 3);
      assert.equal(await passed(`${url}/route`), max);
    }
  });

  test("reading counts nothing", async (t) => {
    const url = await serve(t, { store: FastifyStore });
    await ask(url);
    for (let reads = 0; reads < 5; reads += 1)
      assert.equal(JSON.parse((await ask(`${url}/read`)).body).remaining, 2);
    assert.equal(await passed(url), 2);
  });

  test("continueExceeding begins the window anew with each denial", async (t) => {
    withClock(t);
    const url = await serve(t, { store: FastifyStore, continueExceeding: true });
    assert.equal(await passed(url, 3), 3);
    mock.timers.setTime(start + 50_000);
    assert.equal((await ask(url)).status, 429);
    mock.timers.setTime(start + 109_999);
    assert.equal((await ask(url)).status, 429);
    mock.timers.setTime(start + 169_999);
    assert.equal((await ask(url)).status, 200);
  });

  test("ban, max by request and max 0", async (t) => {
    const banned = await serve(t, { store: FastifyStore, ban: 1 });
    assert.equal(await passed(banned, 3), 3);
    assert.deepEqual(
      [(await ask(banned)).status, (await ask(banned)).status, (await ask(banned)).status],
      [429, 403, 403],
    );
    const byRequest = await serve(t, {
      store: FastifyStore,
      max: ({ headers }) => Number(headers["x-limit"]),
    });
    assert.equal(await passed(byRequest, 9, { "X-Limit": "4" }), 4);
    assert.equal(await passed(byRequest, 9, { "X-Limit": "0" }), 0);
  });

  test("an error of a limiter is the plugin's to treat", async (t) => {
    const failing = () => ({ hit: async () => Promise.reject(new Error("gone")) });
    const store = FastifyStore.over(failing);
    assert.equal((await ask(await serve(t, { store }))).status, 500);
    assert.equal((await ask(await serve(t, { store, skipOnError: true }))).status, 200);
  });

  test("exponentialBackoff is rejected, and so is an invalid limiter", () => {
    assert.throws(() => new FastifyStore({ exponentialBackoff: true }), { code: "invalid_option" });
    assert.throws(() => FastifyStore.over({}), { code: "invalid_option", message: /^limiter: / });
  });
});

describe("NestStorage", () => {
  async function serve(t, throttlers, storage) {
    class AppController {
      hello() {
        return "Hello";
      }
    }
    const { prototype } = AppController;
    Get()(prototype, "hello", Object.getOwnPropertyDescriptor(prototype, "hello"));
    UseGuards(ThrottlerGuard)(AppController);
    Controller()(AppController);
    class AppModule {}
    Module({
      imports: [ThrottlerModule.forRoot({ throttlers, storage })],
      controllers: [AppController],
    })(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.init();
    t.after(() => app.close());
    return listening(t, app.getHttpServer());
  }

  for (const [kind, storage] of Object.entries({
    "in memory": () => new NestStorage(),
    elsewhere: () => new NestStorage((policy) => remote(new RateLimiter(policy))),
    objects: () => new NestStorage(namespace()),
  }))
    test(`${kind}: exactly the limit passes; then the key is blocked, and begins anew`, async (t) => {
      withClock(t);
      const url = await serve(t, [{ ttl: 60_000, limit, blockDuration: 90_000 }], storage());
      const first = await ask(url);
      assert.deepEqual(olderFields(first), ["3", "2", "60"]);
      // One at a time, since the guard asks twice when it blocks.
      for (const status of [200, 200, 429, 429]) assert.equal((await ask(url)).status, status);
      mock.timers.setTime(start + 89_001);
      const denied = await ask(url);
      assert.deepEqual([denied.status, denied.headers["retry-after"]], [429, "1"]);
      mock.timers.setTime(start + 90_000);
      for (const status of [200, 200, 200, 429]) assert.equal((await ask(url)).status, status);
    });

  test("after a block that is shorter than the window a key begins anew", async (t) => {
    withClock(t);
    const storage = new NestStorage();
    const isBlocked = async () => (await storage.increment("a", 60_000, 2, 10_000, "default")).isBlocked;
    for (const expected of [false, false, true, true]) assert.equal(await isBlocked(), expected);
    mock.timers.setTime(start + 10_000);
    for (const expected of [false, false, true]) assert.equal(await isBlocked(), expected);
  });

  test("without a block each hit counts for its own time, and a denied one does not", async (t) => {
    withClock(t);
    const storage = new NestStorage();
    const hit = () => storage.increment("a", 60_000, 2, 0, "default");
    assert.deepEqual(await hit(), { totalHits: 1, timeToExpire: 60, isBlocked: false, timeToBlockExpire: 0 });
    mock.timers.setTime(start + 10_000);
    assert.equal((await hit()).isBlocked, false);
    assert.deepEqual([(await hit()).isBlocked, (await hit()).timeToBlockExpire], [true, 50]);
    mock.timers.setTime(start + 60_000);
    assert.equal((await hit()).isBlocked, false);
    assert.equal((await hit()).isBlocked, true);
  });

  test("several throttlers have budgets of their own, and a limit of 0 denies all", async (t) => {
    const throttlers = [
      { name: "short", ttl: 1_000, limit: 5 },
      { name: "long", ttl: 60_000, limit: 2 },
    ];
    const url = await serve(t, throttlers, new NestStorage());
    for (const status of [200, 200, 429]) assert.equal((await ask(url)).status, status);
    assert.equal((await new NestStorage().increment("a", 60_000, 0, 0, "none")).isBlocked, true);
  });

  test("of a load at once no more than the limit passes", async (t) => {
    const url = await serve(t, [{ ttl: 60_000, limit }], new NestStorage());
    assert.equal(await passed(url), 3);
  });
});
