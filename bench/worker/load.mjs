import { once } from "node:events";
import { connect } from "node:net";
import { cpuOf } from "./cpu.mjs";

/**
 * Asks several servers in turn, over and over, on a number of connections to each, and prints how many answers came in a
 * second and the CPU time of each in microseconds, round by round. In a process of its own and over plain sockets: it must not be what is measured.
 * The turns are short, so that a noisy moment strikes none alone.
 */
const {
  servers: given,
  path,
  keys,
  status,
  refresh,
  connections,
  rounds,
  turn,
  warmUp,
} = JSON.parse(process.argv[2]);

const requests = Array.from({ length: keys }, (_, number) =>
  Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nCF-Connecting-IP: 10.0.${number >> 8}.${number & 255}\r\n\r\n`,
  ),
);

/** Whether these bytes are a whole answer. */
function isWhole(bytes) {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(bytes.latin1Slice(0, end));
  return length ? bytes.length >= end + 4 + Number(length[1]) : bytes.latin1Slice(-5) === "0\r\n\r\n";
}

/** A connection, and the way to ask on it: one question at a time. */
async function connected(port) {
  const socket = connect(port, "127.0.0.1").setNoDelay();
  let bytes;
  let answered;
  socket.on("data", (chunk) => {
    bytes = bytes === undefined ? chunk : Buffer.concat([bytes, chunk]);
    if (!isWhole(bytes)) return;
    const then = answered;
    const found = bytes.latin1Slice(9, 12);
    bytes = answered = undefined;
    then(found);
  });
  const broken = (error) =>
    answered && fail(error ?? new Error("a connection was closed before its answer came"));
  socket.on("error", broken);
  socket.on("close", () => broken());
  await once(socket, "connect");
  const ask = (request, then) => {
    if (socket.destroyed) fail(new Error("a connection was closed before it was asked"));
    answered = then;
    socket.write(request);
  };
  return { ask, close: () => socket.destroy() };
}

/** Makes new connections when the old ones may be about to be closed: servers wait five seconds for a request. */
async function reconnect(server) {
  if (performance.now() - server.since < 3_000) return;
  for (const { close } of server.connections) close();
  server.connections = [];
  for (let count = 0; count < connections; count += 1) server.connections.push(await connected(server.port));
}

function fail(error) {
  console.error(error.message);
  process.exit(1);
}

/** Asks on all connections until it is enough and all have answered: how many answers there were of each status. */
function drive(server, isEnough) {
  const counts = {};
  let open = connections;
  return new Promise((resolve) => {
    const next = ({ ask }) => {
      if (isEnough(counts)) {
        // The first to have nothing to do is the first to be closed.
        if (open === connections) server.since = performance.now();
        open -= 1;
        if (open === 0) resolve(counts);
        return;
      }
      ask(requests[server.asked++ % keys], (found) => {
        counts[found] = (counts[found] ?? 0) + 1;
        next({ ask });
      });
    };
    server.connections.forEach(next);
  });
}

const sum = (counts) => Object.values(counts).reduce((total, count) => total + count, 0);

/** Until every key's object is there, and the code has been compiled for speed. */
async function warm(server) {
  await reconnect(server);
  const from = performance.now();
  await drive(server, (counts) => sum(counts) >= keys && performance.now() - from > warmUp);
}

/**
 * A turn; if so wished, after all keys were asked once, so that a cache has again what it forgot meanwhile, or after a
 * while that is not counted, so that leases are there as they are under a steady load.
 */
async function measure(server) {
  await reconnect(server);
  const { lead } = server;
  if (lead) {
    const from = performance.now();
    await drive(server, () => performance.now() - from > lead);
  }
  if (refresh) await drive(server, (counts) => sum(counts) >= keys);
  const [from, cpu] = [performance.now(), cpuOf(server.pid)];
  const counts = await drive(server, () => performance.now() - from > turn);
  const [seconds, spent] = [(performance.now() - from) / 1_000, cpuOf(server.pid) - cpu];
  if (counts[status] !== sum(counts)) fail(new Error(`${path} answered ${JSON.stringify(counts)}`));
  return { rate: counts[status] / seconds, cpu: (spent * 1_000) / counts[status] };
}

const servers = given.map((server) => ({
  ...server,
  asked: 0,
  since: Number.NEGATIVE_INFINITY,
  connections: [],
}));
for (const server of servers) await warm(server);
const results = servers.map(() => []);
for (let round = 0; round < rounds; round += 1)
  for (const [at, server] of servers.entries()) results[at].push(await measure(server));
console.log(JSON.stringify(results));
process.exit(0);
