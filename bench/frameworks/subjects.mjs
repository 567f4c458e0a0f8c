// Apps that say hello: without a rate limiter, with the guard, and with the one that people have now.

import { createServer } from "node:http";
import fastifyRateLimit from "@fastify/rate-limit";
import { getRequestListener } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import Fastify from "fastify";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import Koa from "koa";
import koaRateLimit from "koa-ratelimit";
import { rateLimit as forExpress } from "tollgate/express";
import { rateLimit as forFastify } from "tollgate/fastify";
import { rateLimit as forFetch } from "tollgate/fetch";
import { rateLimit as forHono } from "tollgate/hono";
import { rateLimit as forKoa } from "tollgate/koa";

/** So many that none is denied. */
const limit = 1_000_000_000;
const windowMs = 3_600_000;
const policy = { algorithm: "fix_window_per_key", limit, scale: windowMs };

export const packages = [
  "express",
  "express-rate-limit",
  "fastify",
  "@fastify/rate-limit",
  "hono",
  "@hono/node-server",
].concat(["hono-rate-limiter", "koa", "koa-ratelimit"]);

function expressApp(middleware) {
  const app = express();
  if (middleware) app.use(middleware);
  app.get("/", (_request, response) => response.send("Hello"));
  return createServer(app);
}

async function fastifyApp(prepare) {
  const app = Fastify();
  await prepare?.(app);
  app.get("/", async () => "Hello");
  await app.ready();
  return app.server;
}

function honoApp(middleware) {
  const app = new Hono();
  if (middleware) app.use(middleware);
  app.get("/", (c) => c.text("Hello"));
  return createServer(getRequestListener(app.fetch));
}

function koaApp(middleware) {
  const app = new Koa();
  if (middleware) app.use(middleware);
  app.use((ctx) => {
    ctx.body = "Hello";
  });
  return createServer(app.callback());
}

const hello = () => new Response("Hello");

/** By framework: first without, second with the guard, then the others. */
export const subjects = {
  Express: {
    without: () => expressApp(),
    tollgate: () => expressApp(forExpress({ policy })),
    "express-rate-limit": () => expressApp(expressRateLimit({ windowMs, limit })),
    "express-rate-limit, draft-8 headers": () =>
      expressApp(expressRateLimit({ windowMs, limit, standardHeaders: "draft-8", legacyHeaders: false })),
  },
  Fastify: {
    without: () => fastifyApp(),
    tollgate: () => fastifyApp((app) => app.addHook("onRequest", forFastify({ policy }))),
    "@fastify/rate-limit": () =>
      fastifyApp((app) => app.register(fastifyRateLimit, { max: limit, timeWindow: windowMs })),
  },
  Hono: {
    without: () => honoApp(),
    tollgate: () => honoApp(forHono({ policy })),
    "hono-rate-limiter": () =>
      honoApp(rateLimiter({ windowMs, limit, keyGenerator: (c) => getConnInfo(c).remote.address })),
  },
  Koa: {
    without: () => koaApp(),
    tollgate: () => koaApp(forKoa({ policy })),
    "koa-ratelimit": () =>
      koaApp(koaRateLimit({ driver: "memory", db: new Map(), duration: windowMs, max: limit })),
  },
  "plain fetch": {
    without: () => createServer(getRequestListener(hello)),
    tollgate: () => createServer(getRequestListener(forFetch({ policy }, hello))),
  },
};
