import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runParts } from "../parts.mjs";
import { median, table } from "../results.mjs";
import { packages, subjects } from "./subjects.mjs";

const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const rounds = 11;
const turn = 500;
const load = { path: "/", keys: 1, status: "200", connections: 16, rounds: 1, turn, warmUp: 0 };

const told = async (server) => (await once(server, "message"))[0];

/** Starts the server of a subject, in a process of its own. */
async function started(framework, name) {
  const server = fork(file("server.mjs"), [framework, name], {
    env: { ...process.env, NODE_ENV: "production" },
  });
  const { port } = await told(server);
  const used = () => {
    server.send("used");
    return told(server);
  };
  return { name, port, used, rounds: [], stop: () => server.kill() };
}

/** Asks a server for a while: how many requests it answered in a second, and what each took of the processor. */
async function measured({ port, used }, duration = turn) {
  const before = await used();
  const args = [file("../worker/load.mjs"), JSON.stringify({ ...load, turn: duration, servers: [{ port }] })];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const [[{ rate }]] = JSON.parse(stdout);
  const after = await used();
  return { rate, time: (after.used - before.used) / ((rate * duration) / 1_000) };
}

/** Each subject of a framework in turn, over and over. */
async function alternated(framework) {
  process.stderr.write(`  ${framework}\n`);
  const servers = [];
  try {
    for (const name of Object.keys(subjects[framework])) servers.push(await started(framework, name));
    for (const server of servers) await measured(server, 2_000);
    for (let round = 0; round < rounds; round += 1)
      for (const server of servers) server.rounds.push(await measured(server));
  } finally {
    for (const { stop } of servers) stop();
  }
  return servers;
}

/** Returns the time that each adds to the same app without it, in the same round. */
function rowsOf(framework, servers) {
  const [without] = servers;
  return servers.map((server) => {
    const each = (figure) => median(server.rounds.map((round, at) => figure(round, without.rounds[at])));
    return [
      `${framework}, ${server.name === "tollgate" ? "**tollgate**" : server.name}`,
      each(({ rate }) => rate).toFixed(0),
      each(({ rate }, { rate: bare }) => rate / bare).toFixed(2),
      each(({ time }) => time).toFixed(1),
      server === without ? "" : each(({ time }, { time: bare }) => time - bare).toFixed(1),
    ];
  });
}

async function overhead() {
  const rows = [];
  for (const framework of Object.keys(subjects)) rows.push(...rowsOf(framework, await alternated(framework)));
  return [
    `One process on ${load.connections} connections, each app with its store in memory and its headers as they come; medians of ${rounds} alternating rounds of ${turn} ms, each beside the same app without a rate limiter in the same round. The time is that of the server's process on the processor, which a busy machine disturbs less.`,
    table(["", "requests a second", "ratio", "µs a request", "more"], rows),
  ].join("\n\n");
}

await runParts({ overhead }, packages, {
  section: "frameworks",
  title: "Frameworks",
  command: "npm run bench -- frameworks",
});
