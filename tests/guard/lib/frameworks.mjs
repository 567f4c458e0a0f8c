// One way to serve the same routes in every framework, so that one suite runs on all adapters.

import { createServer } from "node:http";
import { createServer as createServer2 } from "node:http2";
import { pipeline, Readable } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { rateLimit as forExpress } from "tollgate/express";
import { rateLimit as forFastify } from "tollgate/fastify";
import { rateLimit as forFetch } from "tollgate/fetch";
import { rateLimit as forHono } from "tollgate/hono";
import { rateLimit as forKoa } from "tollgate/koa";

/**
 * Routes are `{ "/path": { guards: [options], handler } }`. A handler is called for each request that goes on, and
 * returns `{ status, headers, body }`, where a body is a text or an iterable of texts.
 */
const answer = async (handler) => ({ status: 200, headers: {}, body: "Hello\n", ...(await handler?.()) });

const isStream = (body) => typeof body === "object" && body !== null;

function expressApp(routes) {
  const app = express();
  // Errors are the test's own; they are not printed.
  app.set("env", "test");
  for (const [path, { guards = [], handler }] of Object.entries(routes))
    app.all(path, ...guards.map(forExpress), async (_request, response) => {
      const { status, headers, body } = await answer(handler);
      response.status(status).set(headers);
      if (isStream(body)) pipeline(Readable.from(body), response, () => {});
      else response.end(body);
    });
  return app;
}

const methods = ["GET", "HEAD", "POST", "OPTIONS"];

function fastifyApp(routes, options = {}) {
  const app = Fastify(options);
  app.addContentTypeParser("*", (_request, payload, done) => {
    payload.resume();
    done(null, undefined);
  });
  for (const [url, { guards = [], handler }] of Object.entries(routes))
    app.route({
      method: methods,
      url,
      onRequest: guards.map(forFastify),
      handler: async (_request, reply) => {
        const { status, headers, body } = await answer(handler);
        return reply
          .code(status)
          .headers(headers)
          .send(isStream(body) ? Readable.from(body) : body);
      },
    });
  return app;
}

const webBody = (body) => (isStream(body) ? Readable.toWeb(Readable.from(body)) : body);

/** A response that no framework made; the headers of a redirect cannot be changed. */
const response = (status, headers, body) =>
  status === 302
    ? Response.redirect(headers.location, status)
    : new Response(webBody(body), { status, headers });

function honoApp(routes) {
  const app = new Hono();
  app.onError((_error, c) => c.text("failed", 500));
  for (const [path, { guards = [], handler, raw = false }] of Object.entries(routes))
    app.all(path, ...guards.map(forHono), async (c) => {
      const { status, headers, body } = await answer(handler);
      if (raw) return response(status, headers, body);
      return c.body(webBody(body), status, headers);
    });
  return app;
}

function koaApp(routes) {
  const app = new Koa();
  app.silent = true;
  for (const [path, { guards = [], handler }] of Object.entries(routes)) {
    const on = (middleware) => app.use((ctx, next) => (ctx.path === path ? middleware(ctx, next) : next()));
    for (const options of guards) on(forKoa(options));
    on(async (ctx) => {
      const { status, headers, body } = await answer(handler);
      ctx.status = status;
      ctx.set(headers);
      if (body !== null) ctx.body = isStream(body) ? Readable.from(body) : body;
    });
  }
  return app;
}

function fetchHandler(routes) {
  const byPath = {};
  for (const [path, { guards = [], handler }] of Object.entries(routes)) {
    const handle = async () => {
      const { status, headers, body } = await answer(handler);
      return response(status, headers, body);
    };
    byPath[path] = guards.reduceRight((inner, options) => forFetch(options, inner), handle);
  }
  return (request, platform) => byPath[new URL(request.url).pathname](request, platform);
}

const quietly = { errorHandler: () => new Response("failed", { status: 500 }) };

/** By framework: its guard, how a request tells a header, and a server of routes. */
export const frameworks = {
  express: {
    rateLimit: forExpress,
    header: (request, name) => request.get(name),
    server: (routes) => createServer(expressApp(routes)),
    app: expressApp,
  },
  fastify: {
    rateLimit: forFastify,
    header: (request, name) => request.headers[name.toLowerCase()],
    server: async (routes) => (await fastifyApp(routes).ready()).server,
    server2: async (routes) => (await fastifyApp(routes, { http2: true }).ready()).server,
    app: fastifyApp,
  },
  hono: {
    rateLimit: forHono,
    header: (c, name) => c.req.header(name),
    server: (routes) => createServer(getRequestListener(honoApp(routes).fetch)),
    server2: (routes) => createServer2(getRequestListener(honoApp(routes).fetch)),
    app: honoApp,
  },
  koa: {
    rateLimit: forKoa,
    header: (ctx, name) => ctx.get(name) || undefined,
    server: (routes) => createServer(koaApp(routes).callback()),
    server2: (routes) => createServer2(koaApp(routes).callback()),
    app: koaApp,
  },
  fetch: {
    rateLimit: forFetch,
    header: (request, name) => request.headers.get(name) ?? undefined,
    server: (routes) => createServer(getRequestListener(fetchHandler(routes), quietly)),
    server2: (routes) => createServer2(getRequestListener(fetchHandler(routes), quietly)),
    app: fetchHandler,
  },
};

/** Listens until the test ends, and returns the address. */
export async function listening(t, server, host = "127.0.0.1") {
  await new Promise((resolve) => server.listen(0, host, resolve));
  t.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return `http://${host.includes(":") ? `[${host}]` : host}:${server.address().port}`;
}

/** Serves routes in a framework until the test ends, and returns the address. */
export const served = async (t, framework, routes) => listening(t, await framework.server(routes));
