// A proxy before a server that loses replies: the server has done what it was asked, and the client does not learn of it.

import { once } from "node:events";
import { connect, createServer } from "node:net";

/** Starts a proxy. `cutNext()` ends the connection in the middle of the next reply. */
export async function startProxy(port) {
  let isCutting = false;
  let cuts = 0;
  const open = new Set();
  const server = createServer((socket) => {
    const upstream = connect(port, "127.0.0.1");
    const end = () => {
      socket.destroy();
      upstream.destroy();
      open.delete(end);
    };
    open.add(end);
    socket.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => {
      if (!isCutting) {
        socket.write(chunk);
        return;
      }
      isCutting = false;
      cuts++;
      // Half of it arrives, or nothing.
      if (cuts % 2 === 0) socket.write(chunk.subarray(0, chunk.length >> 1), end);
      else end();
    });
    for (const each of [socket, upstream]) each.on("close", end).on("error", end);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: server.address().port,
    cutNext() {
      isCutting = true;
    },
    get cuts() {
      return cuts;
    },
    async stop() {
      for (const end of open) end();
      server.close();
      await once(server, "close");
    },
  };
}
