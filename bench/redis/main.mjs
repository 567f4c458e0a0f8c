import { startServer } from "../../tests/redis/lib/server.mjs";
import { runParts } from "../parts.mjs";
import { median, table } from "../results.mjs";
import { Fleet } from "./fleet.mjs";
import { connect, packages, subjects } from "./subjects.mjs";

const rounds = 5;
const seconds = 1;
const inFlight = 32;
const unlimited = 1_000_000_000;
const names = Object.keys(subjects);
const compared = names.filter((name) => !name.includes("blocking"));

const server = await startServer();
const fleet = await Fleet.start(server.port, 10);

const bold = (name) => (name.startsWith("tollgate") ? `**${name}**` : name);
const thousands = (number) => `${(number / 1_000).toFixed(number < 100_000 ? 1 : 0)} k`;
const sum = (reports) => reports.reduce((total, { count }) => total + count, 0);

/** Runs the subjects by turns, and returns for each what every round came to. */
async function alternating(of, processes, task, result) {
  const found = Object.fromEntries(of.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const subject of of) {
      process.stderr.write(`  ${subject}, ${processes} processes\n`);
      found[subject].push(result(await fleet.run(processes, { subject, seconds, inFlight, ...task })));
    }
  return found;
}

/** The median of the ratios of rounds that followed each other. */
const ratio = (own, other) => median(own.map((value, round) => value / other[round]));

const withRatio = (found, name, show) =>
  `${show(median(found[name]))}${name.startsWith("tollgate") ? "" : ` (${ratio(found.tollgate, found[name]).toFixed(1)}×)`}`;

async function throughput() {
  const cases = [
    ["one key, 1 process", 1, 1, 1],
    ["one key, 10 processes", 10, 1, 1],
    ["1,000 keys, 1 process", 1, 1_000, 1],
    ["1,000 keys, 10 processes", 10, 1_000, 6],
  ];
  const speeds = [];
  const times = [];
  for (const [, processes, keys, warmUp] of cases) {
    const task = { keys, limit: unlimited, warmUp };
    const found = await alternating(compared, processes, task, ({ reports, cpu }) => ({
      speed: sum(reports) / seconds,
      cpu: (1e6 * cpu) / sum(reports),
    }));
    const part = (field) =>
      Object.fromEntries(compared.map((name) => [name, found[name].map((each) => each[field])]));
    speeds.push(part("speed"));
    times.push(part("cpu"));
  }
  const rows = (all, show) =>
    compared.map((name) => [bold(name), ...all.map((found) => withRatio(found, name, show))]);
  const micro = (number) => `${number.toFixed(1)} µs`;
  const timeRows = compared.map((name) => [bold(name), ...times.map((found) => micro(median(found[name])))]);
  const head = cases.map(([name]) => name);
  return [
    "### Hits a second",
    `All allowed, ${inFlight} in flight in each process, after 1 s of the same load (6 s with 1,000 keys and 10 processes: a lease of each of 10,000 pairs grows in several calls); the median of ${rounds} alternating rounds of ${seconds} s. × is how many times that Tollgate without leases makes, the median of the rounds.`,
    table(["", ...head], rows(speeds, thousands)),
    "### Redis's time a hit",
    "Of the same rounds: what the server computed, for each hit.",
    table(["", ...head], timeRows),
  ].join("\n\n");
}

async function denials() {
  const task = { keys: 1, limit: 100 };
  const found = await alternating(names, 4, task, ({ reports }) => sum(reports) / seconds);
  return [
    "### A flood of denials",
    `One key whose limit is used up, 4 processes, ${inFlight} in flight in each; hits a second, as above.`,
    table(
      ["", "4 processes"],
      names.map((name) => [bold(name), withRatio(found, name, thousands)]),
    ),
  ].join("\n\n");
}

async function latency() {
  const task = { keys: 1_000, limit: unlimited, rate: 250 };
  const found = await alternating(compared, 4, task, ({ reports }) =>
    reports.flatMap(({ latencies }) => latencies).toSorted((one, other) => one - other),
  );
  const at = (name, part) =>
    `${median(found[name].map((all) => all[Math.floor(all.length * part)])).toFixed(2)} ms`;
  return [
    "### Latency at 1,000 hits a second",
    "4 processes, 1,000 keys; each hit comes when it is due, whether others are done or not.",
    table(
      ["", "p50", "p99"],
      compared.map((name) => [bold(name), at(name, 0.5), at(name, 0.99)]),
    ),
  ].join("\n\n");
}

async function memory() {
  const redis = connect(server.port);
  const used = async () => Number((await redis.info("memory")).match(/used_memory:(\d+)/)[1]);
  const keys = 2_000;
  const rows = [];
  for (const name of compared) {
    const hit = await subjects[name](redis, unlimited);
    await hit("warm");
    await redis.flushall();
    const empty = await used();
    const bytes = [];
    for (const more of [1, 19]) {
      for (let round = 0; round < more; round++)
        for (let number = 0; number < keys; number += 100)
          await Promise.all(Array.from({ length: 100 }, (_, at) => hit(`user:${number + at}`)));
      bytes.push(`${Math.round(((await used()) - empty) / keys)} B`);
    }
    hit.end?.();
    rows.push([bold(name), ...bytes]);
  }
  redis.disconnect();
  return [
    "### Memory of Redis a key",
    `${keys.toLocaleString("en")} keys, with their names.`,
    table(["", "after one hit", "after twenty"], rows),
  ].join("\n\n");
}

const section = { section: "redis", title: "Redis", command: "npm run bench -- redis" };
try {
  await runParts({ throughput, denials, latency, memory }, packages, section);
} finally {
  fleet.stop();
  await server.stop();
}
process.exit();
