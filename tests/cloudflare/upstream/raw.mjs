import { once } from "node:events";
import { connect } from "node:net";

/** How long nothing may come, in milliseconds. */
const patience = 60_000;

/**
 * Sends requests as they are written, several at a time, each on a connection that stays open. Answers in order. A
 * connection that ends without a byte of an answer has not read the request, which is then sent again: workerd closes
 * those that wait for seconds, as when it or this process gets no core.
 */
export async function sendAll(port, requests, connections = 24) {
  const answers = new Array(requests.length);
  let next = 0;
  const work = async () => {
    let connection;
    while (next < requests.length) {
      const at = next++;
      for (let tries = 1; answers[at] === undefined; tries += 1) {
        connection = connection?.isOpen() ? connection : await open(port);
        answers[at] = await connection.ask(requests[at]);
        if (tries === 5 && answers[at] === undefined)
          throw new Error("no connection stayed open for an answer");
      }
    }
    connection?.close();
  };
  await Promise.all(Array.from({ length: connections }, work));
  return answers;
}

/** Sends one request on a connection of its own. */
export async function send(port, request) {
  const [answer] = await sendAll(port, [request], 1);
  return answer;
}

/** The bytes of a request. A target is sent as it is, byte for byte. */
export const written = (method, target, headers = [], body = "") =>
  Buffer.from(
    [`${method} ${target} HTTP/1.1`, "Host: localhost", ...headers, "", body].join("\r\n"),
    "latin1",
  );

async function open(port) {
  const socket = connect(port, "127.0.0.1").setNoDelay();
  let bytes = Buffer.alloc(0);
  let settle;
  let toHead = false;
  const failed = (why) => (bytes.length > 0 ? settle?.reject(new Error(why)) : settle?.resolve(undefined));
  socket.on("data", (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    const answer = settle && parsed(bytes, toHead);
    if (answer === undefined) return;
    bytes = Buffer.alloc(0);
    if (answer.headers.connection === "close" || answer.status === 101) socket.destroy();
    settle.resolve(answer);
  });
  socket.on("error", (error) => failed(error.message));
  socket.on("close", () => failed("the connection was closed in the middle of an answer"));
  socket.setTimeout(patience, () => socket.destroy());
  await once(socket, "connect");
  return {
    ask: (request) => {
      settle = Promise.withResolvers();
      toHead = request.latin1Slice(0, 5) === "HEAD ";
      socket.write(request);
      return settle.promise;
    },
    isOpen: () => !socket.destroyed,
    close: () => socket.destroy(),
  };
}

/** An answer, once all its bytes are there. One to HEAD has no body. */
function parsed(bytes, toHead) {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first, ...lines] = bytes.latin1Slice(0, end).split("\r\n");
  const headers = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const status = Number(first.slice(9, 12));
  const body = bytes.latin1Slice(end + 4);
  const length = headers["content-length"];
  const whole =
    toHead ||
    status === 101 ||
    status === 204 ||
    (length === undefined ? body.endsWith("0\r\n\r\n") : body.length >= Number(length));
  return whole ? { status, headers, body } : undefined;
}
