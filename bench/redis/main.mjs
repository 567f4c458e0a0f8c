import { startServer } from "../../tests/redis/lib/server.mjs";
import { runParts } from "../parts.mjs";
import { median, table } from "../results.mjs";
import { Fleet } from "./fleet.mjs";
import { connect, packages, rules, subjects } from "./subjects.mjs";

const rounds = 5;
const seconds = 1;
const unlimited = 1_000_000_000;
const names = Object.keys(subjects);
const compared = names.filter((name) => !name.includes("blocking"));
const withoutLeases = compared.filter((name) => !name.includes("leases"));

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
      const warmUp = task.warmUp?.(subject, round) ?? 0;
      found[subject].push(
        result(await fleet.run(processes, { subject, seconds, inFlight: 32, ...task, warmUp })),
      );
    }
  return found;
}

/** The median of the ratios of rounds that followed each other. */
const ratio = (own, other) => median(own.map((value, round) => value / other[round]));

function withRatio(found, name, show) {
  const shown = show(median(found[name]));
  if (name.startsWith("tollgate")) return shown;
  const times = ratio(found.tollgate, found[name]);
  return `${shown} (${times.toFixed(times < 2 ? 2 : 1)}×)`;
}

/** The first round also compiles what it runs. */
const warmUp = (_subject, round) => (round === 0 ? 3 : 0.5);

/** A lease of each of 10,000 pairs of key and process grows in several calls. */
const warmUpLeases = (subject, round) => (subject.includes("leases") ? 6 : warmUp(subject, round));

/** Returns all rounds of some cases: hits a second, and microseconds of Redis and of the processes a hit. */
async function measured(of, cases) {
  const found = [];
  for (const { processes, ...task } of cases)
    found.push(
      await alternating(of, processes, { limit: unlimited, warmUp, ...task }, ({ reports, cpu }) => ({
        speed: sum(reports) / seconds,
        redis: (1e6 * cpu) / sum(reports),
        processes: reports.reduce((total, report) => total + report.cpu, 0) / sum(reports),
      })),
    );
  return found;
}

const part = (found, field) =>
  Object.fromEntries(Object.entries(found).map(([name, all]) => [name, all.map((each) => each[field])]));

const micro = (number) => number.toFixed(1);

/** The tables of cases: hits a second, and the time that they take. */
function tables(of, head, found) {
  const speeds = found.map((each) => part(each, "speed"));
  const times = (name, each) =>
    ["redis", "processes"].map((field) => micro(median(part(each, field)[name]))).join(" + ");
  return [
    table(
      ["", ...head],
      of.map((name) => [bold(name), ...speeds.map((each) => withRatio(each, name, thousands))]),
    ),
    table(
      ["", ...head],
      of.map((name) => [bold(name), ...found.map((each) => `${times(name, each)} µs`)]),
    ),
  ];
}

async function throughput() {
  const cases = {
    "one key, 10 processes": { processes: 10, keys: 1 },
    "1,000 keys, 1 process": { processes: 1, keys: 1_000 },
    "1,000 keys, 10 processes": { processes: 10, keys: 1_000, warmUp: warmUpLeases },
  };
  const found = await measured(compared, Object.values(cases));
  const [speeds, times] = tables(compared, Object.keys(cases), found);
  return [
    "### Hits a second",
    `All allowed, 32 in flight in each process, after half a second of the same load (3 s in the first round; 6 s with leases, 1,000 keys and 10 processes: a lease of each of 10,000 pairs grows in several calls); the median of ${rounds} alternating rounds of ${seconds} s. × is how many times that Tollgate without leases makes, the median of the rounds.`,
    speeds,
    "### Time a hit",
    "Of the same rounds: what the server computed, and what the processes did, for each hit.",
    times,
  ].join("\n\n");
}

async function loads() {
  const cases = {
    "1 in flight": { processes: 10, keys: 1_000, inFlight: 1 },
    "4 in flight": { processes: 10, keys: 1_000, inFlight: 4 },
    "32 in flight": { processes: 10, keys: 1_000, inFlight: 32 },
    "one key, 1 in flight": { processes: 10, keys: 1, inFlight: 1 },
  };
  const found = await measured(withoutLeases, Object.values(cases));
  const [speeds, times] = tables(withoutLeases, Object.keys(cases), found);
  return [
    "### By load",
    "10 processes, 1,000 keys or one; hits a second with so many in flight in each process, and the time of the server and of the processes a hit, as above.",
    speeds,
    times,
  ].join("\n\n");
}

/** Measures several limiters with different policies on one key, relative to one limiter. */
async function turns() {
  const of = Object.keys(rules);
  const cases = [
    { processes: 1, keys: 1, inFlight: 1 },
    { processes: 4, keys: 1_000, inFlight: 1 },
    { processes: 4, keys: 1_000, inFlight: 32 },
  ];
  const found = await measured(of, cases);
  const redis = connect(server.port);
  const rows = [];
  for (const name of of) {
    const bytes = Math.round(await bytesAfter(redis, name, 2_000, 40));
    const times = found.map((each) => ["redis", "processes"].map((field) => median(part(each, field)[name])));
    rows.push({ name, cells: [...times, [bytes]] });
  }
  redis.disconnect();
  const [one, four] = rows.map(({ cells }) => cells);
  const divided = four.map((cell, at) => cell.map((number, place) => (number / one[at][place]).toFixed(2)));
  const shown = ({ name, cells }) => [
    name,
    ...cells.map((cell) => (cell.length === 1 ? `${cell} B` : `${cell.map(micro).join(" + ")} µs`)),
  ];
  return [
    "### Limiters with other policies on one key",
    "Four limiters that share a prefix hit each key by turns, and one hits it as often: the time of the server and of the processes a hit, as above, and the memory of Redis a key after forty hits.",
    table(
      ["", "one key", "1,000 keys, 4 processes", "32 in flight", "memory a key"],
      [
        ...rows.map(shown),
        ["four ÷ one", ...divided.map((cell) => cell.map((number) => `${number}×`).join(" + "))],
      ],
    ),
  ].join("\n\n");
}

async function denials() {
  const task = { keys: 1, limit: 100 };
  const found = await alternating(names, 4, task, ({ reports }) => sum(reports) / seconds);
  return [
    "### A flood of denials",
    `One key whose limit is used up, 4 processes, 32 in flight in each; hits a second, as above.`,
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

/** Has one limiter hit each of so many keys so often, on a connection of its own, which takes its buffers with it. */
async function hitEach(redis, name, keys, hits) {
  const clients = async () => (await redis.info("clients")).match(/connected_clients:(\d+)/)[1];
  const before = await clients();
  const client = connect(server.port);
  const hit = await { ...subjects, ...rules }[name](client, unlimited);
  for (let round = 0; round < hits; round++)
    for (let number = 0; number < keys; number += 100)
      await Promise.all(Array.from({ length: 100 }, (_, at) => hit(`user:${number + at}`)));
  client.disconnect();
  while ((await clients()) !== before);
  hit.end?.();
}

/** Returns the bytes that so many hits leave in Redis for each of a number of keys. */
async function bytesAfter(redis, name, keys, hits) {
  const used = async () => Number((await redis.info("memory")).match(/used_memory:(\d+)/)[1]);
  // The script stays.
  await hitEach(redis, name, 100, 1);
  await redis.flushall();
  const empty = await used();
  await hitEach(redis, name, keys, hits);
  return ((await used()) - empty) / keys;
}

async function memory() {
  const redis = connect(server.port);
  const keys = 2_000;
  const rows = [];
  for (const name of compared) {
    const found = [];
    for (const hits of [1, 10, 20]) found.push(`${Math.round(await bytesAfter(redis, name, keys, hits))} B`);
    rows.push([bold(name), ...found]);
  }
  redis.disconnect();
  return [
    "### Memory of Redis a key",
    `${keys.toLocaleString("en")} keys, with their names.`,
    table(["", "after one hit", "after ten", "after twenty"], rows),
  ].join("\n\n");
}

const section = { section: "redis", title: "Redis", command: "npm run bench -- redis" };
try {
  await runParts({ throughput, loads, turns, denials, latency, memory }, packages, section);
} finally {
  fleet.stop();
  await server.stop();
}
process.exit();
