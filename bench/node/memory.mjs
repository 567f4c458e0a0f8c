import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { table } from "../results.mjs";
import { keysOf, subjects } from "./subjects.mjs";

const count = 200_000;

const used = () => {
  for (let pass = 0; pass < 4; pass++) globalThis.gc();
  const { heapUsed, arrayBuffers, external } = process.memoryUsage();
  return heapUsed + Math.max(arrayBuffers, external);
};

/** Bytes a key, beyond the key itself, which the bench holds on to. */
async function measure(name) {
  const keys = keysOf(count);
  const hit = subjects[name].make(count);
  await hit(keys[0]);
  const before = used();
  for (const key of keys) await hit(key);
  const after = used();
  await hit(keys[0]);
  return (after - before) / count;
}

export function memory() {
  process.stderr.write("  memory\n");
  const names = Object.keys(subjects).filter((name) => !/full logs|literal/.test(name));
  const rows = names.map((name) => {
    const args = ["--expose-gc", fileURLToPath(import.meta.url), name];
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
    return [name, Number(stdout).toFixed(0)];
  });
  return `### Memory, ${count.toLocaleString("en")} keys\n\n${table(["", "bytes a key beyond the key"], rows)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await measure(process.argv[2]));
