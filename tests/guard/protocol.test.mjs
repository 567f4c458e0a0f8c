// Methods, streams, connections and upgrades: the headers are right or absent, and no request is broken.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect as connect2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import test, { describe } from "node:test";
import { ask, limitFields } from "./lib/client.mjs";
import { frameworks, listening, served } from "./lib/frameworks.mjs";
import { limiterOf, policyOf, promised } from "./lib/limits.mjs";

const left = (remaining) => ({
  "ratelimit-policy": '"api";q=2;w=60',
  ratelimit: `"api";r=${remaining};t=60`,
});
const denied = { ...left(0), "retry-after": "60" };
const twice = () => [{ limiter: limiterOf(policyOf(2)) }];

for (const [name, framework] of Object.entries(frameworks)) {
  describe(name, () => {
    test("HEAD and OPTIONS count like any other, and a denial of HEAD has no body", async (t) => {
      const url = await served(t, framework, { "/": { guards: twice() } });
      const head = await ask(url, { method: "HEAD" });
      assert.deepEqual([head.status, head.body, limitFields(head)], [200, "", left(1)]);
      const options = await ask(url, { method: "OPTIONS" });
      assert.deepEqual([options.status, limitFields(options)], [200, left(0)]);
      const last = await ask(url, { method: "HEAD" });
      assert.deepEqual([last.status, last.body, limitFields(last)], [429, "", denied]);
    });

    test("204 and 304 have the headers and no body", async (t) => {
      for (const status of [204, 304]) {
        const handler = () => ({ status, body: null });
        const url = await served(t, framework, { "/": { guards: twice(), handler } });
        const response = await ask(url);
        assert.deepEqual([response.status, response.body, limitFields(response)], [status, "", left(1)]);
      }
    });

    test("a redirect, whose headers cannot be changed where it is a Response, has them too", async (t) => {
      const handler = () => ({ status: 302, headers: { location: "http://example.com/there" }, body: null });
      const url = await served(t, framework, { "/": { guards: twice(), handler, raw: true } });
      const response = await ask(url);
      assert.deepEqual(
        [response.status, response.headers.location, limitFields(response)],
        [302, "http://example.com/there", left(1)],
      );
    });

    test("a response of the handler's own making has the headers", async (t) => {
      const url = await served(t, framework, { "/": { guards: [...twice(), ...twice()], raw: true } });
      const response = await ask(url);
      assert.equal(response.headers["ratelimit-policy"], '"api";q=2;w=60');
    });

    test("a handler that throws: its 500 has the headers, and the next request is served", async (t) => {
      let count = 0;
      const handler = async () => {
        count += 1;
        if (count === 1) throw new Error("broken");
        return {};
      };
      const url = await served(t, framework, { "/": { guards: twice(), handler } });
      const failed = await ask(url);
      assert.equal(failed.status, 500);
      assert.deepEqual(limitFields(failed), left(1));
      const next = await ask(url);
      assert.deepEqual([next.status, limitFields(next)], [200, left(0)]);
    });

    test("a stream begins before it ends", async (t) => {
      const gate = promised();
      async function* body() {
        yield "first";
        await gate.promise;
        yield "last";
      }
      const handler = () => ({ headers: { "content-type": "text/event-stream" }, body: body() });
      const url = await served(t, framework, { "/": { guards: twice(), handler } });
      const [response] = await once(request(url).end(), "response");
      assert.deepEqual(limitFields(response), left(1));
      const [first] = await once(response, "data");
      assert.equal(String(first), "first");
      gate.resolve();
      assert.equal(await text(response), "last");
    });

    test("a client that hangs up in a stream does not disturb the next", async (t) => {
      const ended = promised();
      async function* body() {
        try {
          for (;;) {
            yield "more";
            await new Promise(setImmediate);
          }
        } finally {
          ended.resolve();
        }
      }
      const url = await served(t, framework, {
        "/stream": { guards: twice(), handler: () => ({ body: body() }) },
        "/": { guards: twice() },
      });
      const sent = request(`${url}/stream`).end();
      const [response] = await once(sent, "response");
      response.on("error", () => {});
      await once(response, "data");
      sent.destroy();
      await ended.promise;
      assert.equal((await ask(`${url}/`)).status, 200);
    });

    test("one connection: denied with a large body unread, and then used again", async (t) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      t.after(() => agent.destroy());
      const limiter = limiterOf(policyOf(1));
      const key = (request) => framework.header(request, "X-User") ?? "nobody";
      const url = await served(t, framework, { "/": { guards: [{ limiter, key }] } });
      const body = "x".repeat(1_000_000);
      const post = (user) => ask(url, { method: "POST", body, agent, headers: { "X-User": user } });
      assert.equal((await post("ann")).status, 200);
      assert.equal((await post("ann")).status, 429);
      assert.equal((await post("bob")).status, 200);
      assert.equal((await post("bob")).status, 429);
    });

    test("pipelined requests get their responses in order", async (t) => {
      const url = new URL(await served(t, framework, { "/": { guards: twice() } }));
      const socket = connect(Number(url.port), url.hostname);
      const get = (last = "") => `GET / HTTP/1.1\r\nHost: x\r\n${last}\r\n`;
      socket.write(get() + get() + get("Connection: close\r\n"));
      const statuses = (await text(socket)).match(/^HTTP\/1\.1 \d+/gm);
      assert.deepEqual(statuses, ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429"]);
    });

    test("an upgrade that the server takes is not the guard's, and works", async (t) => {
      const server = await framework.server({ "/": { guards: twice() } });
      server.on("upgrade", ({ headers }, socket) => {
        const accept = createHash("sha1")
          .update(`${headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
          .digest("base64");
        const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
        socket.write(`${[...lines, `Sec-WebSocket-Accept: ${accept}`].join("\r\n")}\r\n\r\n`);
        // The client closes with a frame.
        socket.once("data", () => socket.destroy());
        // A text frame of five bytes.
        socket.write(Buffer.from([0x81, 5, ...Buffer.from("hello")]));
      });
      const url = await listening(t, server);
      const socket = new WebSocket(url.replace("http:", "ws:"));
      const [{ data }] = await once(socket, "message");
      assert.equal(data, "hello");
      socket.close();
      assert.deepEqual(limitFields(await ask(url)), left(1));
    });

    test("an upgrade without a listener is a request like any other", async (t) => {
      const url = await served(t, framework, { "/": { guards: twice() } });
      const headers = { Connection: "Upgrade", Upgrade: "websocket" };
      const first = await ask(url, { headers });
      assert.deepEqual([first.status, limitFields(first)], [200, left(1)]);
      await ask(url, { headers });
      assert.equal((await ask(url, { headers })).status, 429);
    });

    if (framework.server2 !== undefined)
      test("HTTP/2: many streams of one connection, exactly the limit of them", async (t) => {
        const limiter = limiterOf(policyOf(5));
        const server = await framework.server2({ "/": { guards: [{ limiter }] } });
        const session = connect2(await listening(t, server));
        const get = async () => {
          const stream = session.request({ ":path": "/" });
          const [headers] = await once(stream, "response");
          return { status: headers[":status"], headers, body: await text(stream) };
        };
        const responses = await Promise.all(Array.from({ length: 20 }, get));
        assert.equal(responses.filter(({ status }) => status === 200).length, 5);
        const refused = responses.filter(({ status }) => status === 429);
        assert.equal(refused.length, 15);
        for (const { headers, body } of refused) {
          assert.equal(headers["retry-after"], "60");
          assert.equal(JSON.parse(body).status, 429);
        }
        session.close();
        await once(session, "close");
      });
  });
}
