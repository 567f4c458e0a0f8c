import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { median, table } from "../results.mjs";
import { running, subjects } from "./subjects.mjs";

const load = fileURLToPath(new URL("load.mjs", import.meta.url));
// V8 compiles hot wasm for speed in the first seconds.
const common = { connections: 16, rounds: 7, turn: 500, warmUp: 6_000 };
/** How long a subject works before each turn that is counted, in milliseconds. Leases end while the others take turns. */
const lead = 2_000;
const leadOfLeases = 12_000;

const counts = [1, 1_000];
const words = { 1: "one object", 1000: "1,000 objects" };
const kinds = {
  allowed: { path: "/open", status: "200" },
  denied: { path: "/shut", status: "429", refresh: true },
};

const byHand = "object by hand";
const gatewayByHand = "gateway by hand";
const withLeases = "Tollgate's gateway with leases";
const withoutCache = "Tollgate's gateway, deny cache off";
const unlimited = "a gateway without limits";

/** Differ from others only in what they do with allowed hits, or with denied ones. */
const onlyAllowed = [
  "Tollgate's object with credit",
  "Tollgate's gateway with credit",
  withLeases,
  unlimited,
];
const onlyDenied = [withoutCache];

/** Returns the subjects of a kind of hit. */
const measured = (kind) =>
  Object.keys(subjects).filter((name) => !(kind === "denied" ? onlyAllowed : onlyDenied).includes(name));

/** Answers a second of each in turn, and the CPU time of an answer in microseconds: the medians of all rounds. */
async function measure(started, kind, keys) {
  process.stderr.write(`  ${kind}, ${words[keys]}\n`);
  const names = measured(kind);
  const servers = names.map((name) => ({
    port: started[name].port,
    pid: started[name].pid,
    lead: kind === "denied" ? 0 : name === withLeases ? leadOfLeases : lead,
  }));
  const args = [load, JSON.stringify({ ...common, ...kinds[kind], keys, servers })];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const medians = JSON.parse(stdout).map((rounds) => ({
    rate: median(rounds.map(({ rate }) => rate)),
    cpu: median(rounds.map(({ cpu }) => cpu ?? Number.NaN)),
  }));
  return Object.fromEntries(names.map((name, at) => [name, medians[at]]));
}

/** What is set beside what: a kind of hit on a subject over a kind of hit on another. */
const comparisons = [
  ["allowed", "Tollgate's object", "allowed", byHand],
  ["allowed", "Tollgate's object with credit", "allowed", byHand],
  ["allowed", "Tollgate's gateway", "allowed", gatewayByHand],
  ["allowed", "Tollgate's gateway with credit", "allowed", gatewayByHand],
  ["allowed", withLeases, "allowed", gatewayByHand],
  ["allowed", unlimited, "allowed", gatewayByHand],
  ["denied", "Tollgate's object", "allowed", byHand],
  ["denied", withoutCache, "allowed", byHand],
  ["denied", "Tollgate's gateway", "allowed", byHand],
];

export async function speed() {
  const results = { allowed: {}, denied: {} };
  await running(subjects, async (started) => {
    for (const keys of counts)
      for (const kind of Object.keys(kinds)) results[kind][keys] = await measure(started, kind, keys);
  });
  const ratios = comparisons.map(([kind, own, otherKind, other]) => [
    `${kind}, ${own} ÷ ${otherKind}, ${other}`,
    ...counts.flatMap((keys) => {
      const [one, hand] = [results[kind][keys][own], results[otherKind][keys][other]];
      return [(one.rate / hand.rate).toFixed(2), (hand.cpu / one.cpu).toFixed(2)];
    }),
  ]);
  const rates = Object.keys(kinds).flatMap((kind) =>
    measured(kind).map((name) => [
      `${kind}, ${name}`,
      ...counts.flatMap((keys) => {
        const { rate, cpu } = results[kind][keys][name];
        return [rate.toFixed(0), cpu.toFixed(0)];
      }),
    ]),
  );
  const columns = (first, second) => counts.flatMap((keys) => [`${words[keys]}: ${first}`, second]);
  return [
    "### Speed",
    `workerd by itself, ${common.connections} connections, objects on a disk; the medians of ${common.rounds} rounds in which all take turns of ${common.turn} ms, for allowed hits each after ${lead / 1_000} s that are not counted, with leases ${leadOfLeases / 1_000} s. An allowed hit writes a row before it is answered, a denied one writes none. The objects are called by RPC from the same Worker of a few lines, which answers by itself; the gateways pass on to another Worker. By hand is a token bucket in JavaScript with the same row, alarm and headers. Tollgate's also log their denials. CPU time is that of all threads of workerd; on a busy machine it says more than the hits a second.`,
    table(["as ratios, by", ...columns("hits a second", "CPU of a hit")], ratios),
    table(["", ...columns("hits a second", "µs of CPU a hit")], rates),
  ].join("\n\n");
}
