import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { median, table } from "../results.mjs";
import { running, subjects } from "./subjects.mjs";

const rounds = 15;
const load = fileURLToPath(new URL("load.mjs", import.meta.url));
const common = { connections: 16, rounds, turn: 250, warmUp: 1_500 };

const cases = [
  { name: "allowed, one object", path: "/open", keys: 1, status: "200" },
  { name: "allowed, 1,000 objects", path: "/open", keys: 1_000, status: "200" },
  { name: "denied, one object", path: "/shut", keys: 1, status: "429" },
  { name: "denied, 1,000 objects", path: "/shut", keys: 1_000, status: "429" },
];

/** Answers a second of each in turn: the medians of all rounds. */
async function measure(started, { name, ...given }) {
  process.stderr.write(`  ${name}\n`);
  const ports = Object.values(started).map(({ port }) => port);
  const args = [load, JSON.stringify({ ...common, ...given, ports })];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const medians = JSON.parse(stdout).map(median);
  return Object.fromEntries(Object.keys(started).map((subject, at) => [subject, medians[at]]));
}

export async function speed() {
  const names = Object.keys(subjects);
  const results = await running(subjects, async (started) => {
    const all = [];
    for (const each of cases) all.push([each, await measure(started, each)]);
    return all;
  });
  const times = results.map(([{ name }, found]) => [
    name,
    ...names.map((subject) => found[subject].toFixed(0)),
  ]);
  return `### Answers a second\n\n${table(["", ...names], times)}`;
}
