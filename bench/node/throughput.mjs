import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { table } from "../results.mjs";
import { keysOf, subjects, withListeners, withoutWasm } from "./subjects.mjs";

const rounds = 7;
const counts = [1, 1_000, 65_536, 1_000_000];
const peers = [
  "hand-written Map",
  "limiter",
  "express-rate-limit MemoryStore",
  "rate-limiter-flexible memory",
];

/** The last answer, where each is kept: no engine can leave out what others may read. */
export let kept;

/** Nanoseconds a hit, the best of several rounds. */
async function measure(name, count, keeps) {
  const { make, async } = { ...subjects, ...withoutWasm, ...withListeners }[name];
  const keys = keysOf(count);
  const hit = make(count);
  const hits = Math.max(300_000, Math.min(2 * count, 1_000_000));
  let best = Number.POSITIVE_INFINITY;
  let allowed = 0;
  for (let round = 0; round < rounds; round++) {
    const started = process.hrtime.bigint();
    if (async) {
      for (let at = 0; at < hits; at++) if ((await hit(keys[at % count])) !== undefined) allowed++;
    } else if (keeps) {
      for (let at = 0; at < hits; at++) {
        kept = hit(keys[at % count]);
        if (kept.allowed) allowed++;
      }
    } else {
      for (let at = 0; at < hits; at++) if (hit(keys[at % count]).allowed) allowed++;
    }
    best = Math.min(best, Number(process.hrtime.bigint() - started) / hits);
  }
  if (allowed === 0) throw new Error(`${name} allowed nothing`);
  return best;
}

/** Each in a process of its own, and all of them in turn, so that a noisy moment strikes none alone. */
function measureAll(count, { names = Object.keys(subjects), keeps = false } = {}) {
  const best = {};
  for (let turn = 0; turn < 3; turn++) {
    for (const name of names.filter((name) => count <= (subjects[name]?.most ?? count))) {
      const args = [fileURLToPath(import.meta.url), name, String(count), ...(keeps ? ["keeps"] : [])];
      const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: "utf8" });
      if (status !== 0) throw new Error(stderr);
      best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, Number(stdout));
    }
  }
  return best;
}

const ratio = (time, other) => (time === undefined ? "–" : (time / other).toFixed(2));

/** How long a hit takes beside each peer's, as ratios. */
export function throughput() {
  const results = counts.map((count) => {
    process.stderr.write(`  throughput with ${count.toLocaleString("en")} keys\n`);
    return measureAll(count);
  });
  const own = Object.keys(subjects).filter((name) => name.startsWith("tollgate"));
  const times = table(
    ["ns a hit", ...counts.map((count) => `${count.toLocaleString("en")} keys`)],
    Object.keys(subjects).map((name) => [name, ...results.map((best) => best[name]?.toFixed(0) ?? "–")]),
  );
  const fixed = own[0];
  const ratios = table(
    ["time of fix_window ÷ time of", ...counts.map((count) => `${count.toLocaleString("en")} keys`)],
    peers.map((peer) => [peer, ...results.map((best) => (best[fixed] / best[peer]).toFixed(2))]),
  );
  const others = table(
    ["time of … ÷ time of fix_window", ...counts.map((count) => `${count.toLocaleString("en")} keys`)],
    own.slice(1).map((name) => [name, ...results.map((best) => ratio(best[name], best[fixed]))]),
  );
  return `### Time of a hit\n\n${ratios}\n\n${others}\n\n${times}\n\n${whenKept(fixed)}`;
}

/** How long a hit takes in `tollgate/js`, the same core as JavaScript, beside the wasm's. */
export function scripted() {
  const names = Object.keys(withoutWasm);
  const wasmOf = (name) => name.replace("tollgate/js", "tollgate");
  const results = [1, 1_000, 65_536].map((count) => {
    process.stderr.write(`  tollgate/js with ${count.toLocaleString("en")} keys\n`);
    return measureAll(count, { names: names.flatMap((name) => [name, wasmOf(name)]) });
  });
  const rows = names.map((name) => [name, ...results.map((best) => ratio(best[name], best[wasmOf(name)]))]);
  const head = ["time of a hit ÷ with WebAssembly", "1 keys", "1,000 keys", "65,536 keys"];
  return `### Without WebAssembly\n\n${table(head, rows)}`;
}

/** How long a hit takes with listeners of its decision, beside one without. */
export function listeners() {
  const names = Object.keys(withListeners);
  const keyCounts = [1, 1_000, 65_536];
  const results = keyCounts.map((count) => {
    process.stderr.write(`  listeners with ${count.toLocaleString("en")} keys\n`);
    return measureAll(count, { names });
  });
  const rows = names.map((name) => [name, ...results.map((best) => ratio(best[name], best[names[0]]))]);
  const times = names.map((name) => [`${name}, ns`, ...results.map((best) => best[name].toFixed(0))]);
  const head = ["time of a hit ÷ without listeners", "1 keys", "1,000 keys", "65,536 keys"];
  return `### Listeners\n\n${table(head, [...rows, ...times])}`;
}

/** Who only reads a decision may have none made, where the engine inlines the hit. Here each is made, and kept. */
function whenKept(fixed) {
  process.stderr.write("  throughput where decisions are kept\n");
  const names = [fixed, ...peers];
  const results = counts.map((count) => measureAll(count, { names, keeps: true }));
  return table(
    ["ns a hit, each decision kept", ...counts.map((count) => `${count.toLocaleString("en")} keys`)],
    names.map((name) => [name, ...results.map((best) => best[name].toFixed(0))]),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [name, count, keeps] = process.argv.slice(2);
  console.log(await measure(name, Number(count), keeps === "keeps"));
}
