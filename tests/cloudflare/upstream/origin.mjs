import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

/** A server that tells what reached it, answers by its routes, and opens WebSockets that say hello. */
export async function startOrigin(routes) {
  const reached = [];
  const server = createServer((request, response) => {
    reached.push(request.url);
    const { pathname } = new URL(request.url, "http://localhost");
    const route = routes[pathname] ?? ((_, response) => response.end("origin"));
    route(request, response);
  });
  server.on("upgrade", (request, socket) => {
    reached.push(request.url);
    socket.end(Buffer.concat([handshake(request.headers["sec-websocket-key"]), frame("hello")]));
  });
  // A connection that is closed between two requests would be an answer of the gateway's.
  server.keepAliveTimeout = 0;
  await once(server.listen(0, "localhost"), "listening");
  return {
    url: `http://localhost:${server.address().port}`,
    reached,
    close: () => server.close() && server.closeAllConnections(),
  };
}

/** The answer by which RFC 6455 opens a WebSocket. */
function handshake(key) {
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  return Buffer.from(`${lines.join("\r\n")}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
}

/** A short text, then the end. */
const frame = (text) => Buffer.from([0x81, text.length, ...Buffer.from(text), 0x88, 2, 0x03, 0xe8]);
