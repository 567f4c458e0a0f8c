import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SqliteStore } from "../../examples/store-sqlite/store.mjs";
import { circumstances, save, table } from "../results.mjs";

const fleets = [2, 10, 50];
const seconds = 10;
const { values } = parseArgs({ options: { save: { type: "boolean" } } });
const worker = new URL("process.mjs", import.meta.url);

/** Has so many processes hit one key at the same time. Returns the tries of each hit, and how many came too late. */
async function contend(size) {
  process.stderr.write(`  ${size} processes\n`);
  const folder = mkdtempSync(join(tmpdir(), "tollgate-store-"));
  const file = join(folder, "limits.sqlite");
  // SQLite sets the mode of a new file only while no other process opens it.
  new SqliteStore(file);
  const children = Array.from({ length: size }, () => fork(worker, [file]));
  try {
    const next = () => Promise.all(children.map((child) => once(child, "message")));
    await next();
    const reports = next();
    for (const child of children) child.send({ seconds });
    const found = (await reports).map(([report]) => report);
    const tries = found.flatMap((report) => report.tries).sort((one, other) => one - other);
    return { tries, late: found.reduce((sum, { late }) => sum + late, 0) };
  } finally {
    for (const child of children) child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

const rows = [];
for (const size of fleets) {
  const { tries, late } = await contend(size);
  const mean = tries.reduce((sum, count) => sum + count, 0) / tries.length;
  const share = (100 * late) / (tries.length + late);
  rows.push([
    size,
    mean.toFixed(1),
    tries[Math.floor(tries.length * 0.99)],
    tries.at(-1),
    `${share.toFixed(1)} %`,
  ]);
}
const head = [
  "processes that hit one key without a pause",
  "tries for a swap, mean",
  "99 of 100 need at most",
  "the most",
  "failed",
];
const text = [
  circumstances([]),
  `Processes of Node on one file of SQLite, whose calls are delayed by 2 ms; each hits for ${seconds} s, one hit after the other. Failed are those that needed more than the default timeout or maxTries.`,
  table(head, rows),
].join("\n\n");
console.log(text);
if (values.save)
  save("store", "A store of your own", `Reproduce with \`npm run bench -- store\`.\n\n${text}`);
