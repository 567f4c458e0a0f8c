import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { circumstances, save, table } from "../results.mjs";
import { packages, subjects } from "./subjects.mjs";

const calls = 100_000;
const every = 10;
const rounds = 3;
const { values } = parseArgs({ options: { save: { type: "boolean" } } });

function measured(name) {
  process.stderr.write(`  ${name}\n`);
  const file = fileURLToPath(new URL("measure.mjs", import.meta.url));
  const args = ["--expose-gc", "--no-warnings", file, name, calls, every];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** The best of several alternating rounds, since a shared machine interrupts. */
const best = (one, other) => ({
  ...other,
  queueing: Math.min(one.queueing, other.queueing),
  draining: Math.min(one.draining, other.draining),
});
const results = Object.keys(subjects).map((name) => [name, measured(name)]);
for (let round = 1; round < rounds; round += 1) {
  for (const result of results) result[1] = best(result[1], measured(result[0]));
}
const [, own] = results[0];
const perCall = (total) => (total * 1_000) / calls;
const withRatio = (value, ownValue, unit) =>
  `${value.toFixed(1)} ${unit} (${(value / ownValue).toFixed(1)}×)`;
const rows = results.map(([name, { queueing, draining, memory, early, late, misplaced }]) => [
  name === "tollgate" ? `**${name}**` : name,
  withRatio(perCall(queueing), perCall(own.queueing), "µs"),
  withRatio(perCall(draining), perCall(own.draining), "µs"),
  withRatio(memory, own.memory, "B"),
  early,
  `${late} ms`,
  misplaced,
]);
const head = [
  "",
  "to queue a call",
  "to let it through",
  "memory a call",
  "too early",
  "last one late by",
  "out of order",
];
const text = [
  circumstances(packages),
  `${calls.toLocaleString("en")} calls at once, one let through every ${every} ms, under a clock that jumps from timer to timer; the best of ${rounds} alternating rounds. × is what it takes beside Tollgate. Too early are calls less than ${every} ms after the one before.`,
  table(head, rows),
].join("\n\n");
console.log(text);
if (values.save)
  save("throttle", "Waiting: Throttle", `Reproduce with \`npm run bench -- throttle\`.\n\n${text}`);
