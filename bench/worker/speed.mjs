import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { table } from "../results.mjs";
import { running, subjects } from "./subjects.mjs";

const rounds = 5;
const load = fileURLToPath(new URL("load.mjs", import.meta.url));
const common = { connections: 16, warmUp: 200, duration: 1_000 };

const cases = [
  { name: "allowed, one object", path: "/open", keys: 1, status: "200" },
  { name: "allowed, 1,000 objects", path: "/open", keys: 1_000, status: "200" },
  { name: "denied, one object", path: "/shut", keys: 1, status: "429" },
  { name: "denied, 1,000 objects", path: "/shut", keys: 1_000, status: "429" },
];

/** Answers a second, all of the kind that is meant. */
async function measure({ port }, { path, keys, status }) {
  const { stdout } = await promisify(execFile)(process.execPath, [
    load,
    JSON.stringify({ ...common, port, path, keys }),
  ]);
  const { counts, seconds } = JSON.parse(stdout);
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (all === 0 || counts[status] !== all) throw new Error(`${path}: ${JSON.stringify(counts)}`);
  return all / seconds;
}

const median = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];

/** What each answers in each case: the median of rounds in which they take turns. */
async function measureAll(started) {
  const results = {};
  for (const each of cases) {
    process.stderr.write(`  ${each.name}\n`);
    const runs = Object.fromEntries(Object.keys(started).map((name) => [name, []]));
    for (let round = 0; round < rounds; round += 1)
      for (const [name, one] of Object.entries(started)) runs[name].push(await measure(one, each));
    results[each.name] = Object.fromEntries(
      Object.entries(runs).map(([name, numbers]) => [name, median(numbers)]),
    );
  }
  return results;
}

export async function speed() {
  const results = await running(subjects, measureAll);
  const names = Object.keys(subjects);
  const rows = cases.map(({ name }) => [name, ...names.map((subject) => results[name][subject].toFixed(0))]);
  return `### Answers a second\n\n${table(["", ...names], rows)}`;
}
