import { once } from "node:events";
import { createServer } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";

/** The header by which an origin says which of its handlers answered. */
export const handledBy = "x-handled-by";

/** Routes that a router of a framework has, by the name of their handler. The last one takes everything else. */
const routes = { public: "/public/*", api: "/api/*", login: "/login", users: "/users/:id/files", rest: "/*" };

/** Express: matches as sent, in any letter case, with or without a slash at the end. */
function expressOrigin() {
  const app = express();
  for (const [name, route] of Object.entries(routes))
    app.all(route.replace("/*", "{/*path}"), (_, response) => response.set(handledBy, name).end(name));
  return createServer(app);
}

/** Fastify: decodes everything but reserved characters; letter case and slashes at the end matter. */
async function fastifyOrigin() {
  let server;
  const app = fastify({
    serverFactory: (handler) => {
      server = createServer(handler);
      return server;
    },
  });
  for (const [name, route] of Object.entries(routes)) {
    const answer = (_, reply) => reply.header(handledBy, name).send(name);
    app.all(route, answer);
    if (route.endsWith("/*") && name !== "rest") app.all(route.slice(0, -2), answer);
  }
  await app.ready();
  return server;
}

/** Hono on Node: resolves dot segments, then decodes everything but reserved characters. */
function honoOrigin() {
  const app = new Hono();
  for (const [name, route] of Object.entries(routes))
    app.all(route, (context) => context.text(name, 200, { [handledBy]: name }));
  return createAdaptorServer(app);
}

/** A server that finds a handler in a path that `read` has made of a target, or rejects it. */
const ownOrigin = (read) => () =>
  createServer((request, response) => {
    const path = read(request.url.split("?", 1)[0]);
    if (path === undefined) return response.writeHead(400).end();
    const name = handlerOf(path);
    response.writeHead(200, { [handledBy]: name }).end(name);
  });

function handlerOf(path) {
  if (/^\/public(\/|$)/.test(path)) return "public";
  if (/^\/api(\/|$)/.test(path)) return "api";
  if (/^\/login\/?$/.test(path)) return "login";
  if (/^\/users\/[^/]*\/files\/?$/.test(path)) return "users";
  return "rest";
}

/** Decodes once, merges slashes, then resolves dot segments, as nginx does. */
function decodeLikeNginx(target) {
  if (/%(?![0-9a-f]{2})|%00/i.test(target)) return undefined;
  const decoded = target.replace(/%([0-9a-f]{2})/gi, (_, hex) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const segments = [];
  for (const segment of decoded.split("/").filter((segment) => segment !== "" && segment !== ".")) {
    if (segment !== "..") segments.push(segment);
    else if (segments.pop() === undefined) return undefined;
  }
  return `/${segments.join("/")}`;
}

const started = {
  Express: expressOrigin,
  Fastify: fastifyOrigin,
  Hono: honoOrigin,
  "a server that decodes like nginx": ownOrigin(decodeLikeNginx),
  "a server that does not decode": ownOrigin((target) => target),
};

export const originNames = Object.keys(started);

/** Starts an origin on a free port. */
export async function startOriginNamed(name) {
  const server = await started[name]();
  // A connection that is closed between two requests would be an answer of the gateway's.
  server.keepAliveTimeout = 0;
  await once(server.listen(0, "localhost"), "listening");
  return {
    url: `http://localhost:${server.address().port}`,
    close: () => server.close() && server.closeAllConnections(),
  };
}
