// The gateway forwards bodies, paths, redirects, failures and WebSockets unchanged to a real origin.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { after, before } from "../../lib/hooks.mjs";
import { bundle, start } from "../durability/workerd.mjs";
import { startOrigin } from "./origin.mjs";
import { send, written } from "./raw.mjs";

const folder = mkdtempSync(join(tmpdir(), "tollgate-upstream-"));
const arrived = Promise.withResolvers();
const read = Promise.withResolvers();

const routes = {
  "/up": async (request, response) => {
    let body = "";
    for await (const chunk of request) {
      body += chunk;
      arrived.resolve();
    }
    response.end(body);
  },
  "/down": async (_, response) => {
    response.write("first ");
    await read.promise;
    response.end("second");
  },
  "/moved": (_, response) => response.writeHead(302, { Location: "/elsewhere" }).end(),
  "/broken": (_, response) => response.writeHead(500, { "X-Own": "yes" }).end("broken"),
  "/odd": (_, response) => response.writeHead(999, { "X-Own": "odd", "Content-Length": 3 }).end("odd"),
  "/empty": (_, response) => response.writeHead(304).end(),
};

const policies = {
  many: { algorithm: "fix_window_per_key", limit: 1_000, scale: "1d" },
  one: { algorithm: "fix_window_per_key", limit: 1, scale: "1d" },
};
const rules = [
  { path: "/socket", policies: "one" },
  { path: "/*", policies: "many" },
];

let origin;
let workerd;
before(async () => {
  origin = await startOrigin(routes);
  await bundle(folder, { upstream: origin.url, policies, rules, timeout: "1m" });
  workerd = await start(folder);
});
after(async () => {
  await workerd?.kill();
  origin?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a connection for each request: workerd closes a kept one after five seconds, which may be just before its use. */
const ask = (path, init) =>
  fetch(workerd.url + path, { redirect: "manual", headers: { Connection: "close" }, ...init });

test("a body is passed on while it still comes, either way", { timeout: 120_000 }, async () => {
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue("first ");
      // Were the whole body waited for, nothing would ever arrive.
      await arrived.promise;
      controller.enqueue("second");
      controller.close();
    },
  }).pipeThrough(new TextEncoderStream());
  const up = await ask("/up", { method: "POST", body, duplex: "half" });
  assert.equal(await up.text(), "first second");

  const down = await ask("/down");
  let text = "";
  for await (const chunk of down.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    read.resolve();
  }
  assert.equal(text, "first second");
});

test("path and query arrive as they were spelled", async () => {
  await ask("/a%2Fb//c;d?e=%20f");
  assert.equal(origin.reached.at(-1), "/a%2Fb//c;d?e=%20f");
});

test("redirects, failures and empty responses are returned unchanged, with the limit's headers", async () => {
  const moved = await ask("/moved");
  assert.deepEqual([moved.status, moved.headers.get("Location")], [302, "/elsewhere"]);
  const broken = await ask("/broken");
  assert.deepEqual([broken.status, await broken.text(), broken.headers.get("X-Own")], [500, "broken", "yes"]);
  const empty = await ask("/empty");
  assert.equal(empty.status, 304);
  for (const { headers } of [moved, broken, empty]) assert.match(headers.get("RateLimit"), /^"many";r=\d+/);
});

test("a status that the platform makes no response of is passed on, and logged", async () => {
  const odd = await send(workerd.port, written("GET", "/odd"));
  assert.deepEqual([odd.status, odd.headers["x-own"], odd.body], [999, "odd", "odd"]);
  while (!workerd.said().includes('"failure":"status","status":999')) await new Promise(setImmediate);
  assert.doesNotMatch(workerd.said(), /Uncaught/);
});

test("an invalid host gets 400", async () => {
  const request = Buffer.from("GET / HTTP/1.1\r\nHost: [::\r\n\r\n");
  assert.equal((await send(workerd.port, request)).status, 400);
});

test("a WebSocket opens through the gateway, and one that is denied never reaches the origin", async () => {
  const address = `${workerd.url.replace("http", "ws")}/socket`;
  const [{ data }] = await once(new WebSocket(address), "message");
  assert.equal(data, "hello");
  const denied = new WebSocket(address);
  await once(denied, "error");
  assert.equal(origin.reached.filter((path) => path === "/socket").length, 1);
});

test("an origin that is not there is a 502, and logged", { timeout: 120_000 }, async () => {
  origin.close();
  const response = await ask("/gone");
  assert.deepEqual([response.status, (await response.json()).status], [502, 502]);
  // The log comes by another pipe than the response.
  while (!workerd.said().includes('"failure":"upstream"')) await new Promise(setImmediate);
});
