import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inProject } from "../../scripts/lib/paths.mjs";
import { prepare, start } from "../../scripts/lib/workerd.mjs";
import { median, table } from "../results.mjs";
import { cpuOf } from "./cpu.mjs";
import { gateway, upstream, worker } from "./subjects.mjs";

const rounds = 21;

const passOn = { entry: worker("pass.js"), upstream };
const programs = {
  "a Worker that passes on": { ...passOn, wasm: null },
  "the same with the wasm beside it, unused": passOn,
  "Tollgate's gateway": { entry: inProject("js/cloudflare/worker.ts"), upstream, bindings: gateway({}) },
};

/** Returns the time from the start of the process to its first answer, and the CPU time of that, in milliseconds. */
async function firstAnswer(folder) {
  const from = performance.now();
  const { url, pid, kill } = await start(folder, { output: "ignore" });
  try {
    const response = await fetch(`${url}/elsewhere`);
    if ((await response.text()) !== "hello\n") throw new Error(`the first answer was ${response.status}`);
    return { passed: performance.now() - from, cpu: cpuOf(pid) };
  } finally {
    await kill();
  }
}

export async function startup() {
  process.stderr.write("  start-up\n");
  const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"));
  const names = Object.keys(programs);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  try {
    for (const [name, { entry, ...options }] of Object.entries(programs)) {
      mkdirSync(join(folder, name));
      await prepare(join(folder, name), entry, { ...options, minify: true });
    }
    for (let round = 0; round < rounds; round += 1)
      for (const name of names) times[name].push(await firstAnswer(join(folder, name)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const medians = names.map((name) => ({
    name,
    passed: median(times[name].map(({ passed }) => passed)),
    cpu: median(times[name].map(({ cpu }) => cpu ?? Number.NaN)),
  }));
  const [empty] = medians;
  const more = (one, field) => (one[field] - empty[field]).toFixed(1);
  const rows = medians.map((one) => [
    one.name,
    one.cpu.toFixed(1),
    more(one, "cpu"),
    one.passed.toFixed(1),
    more(one, "passed"),
  ]);
  return [
    "### Start-up",
    `From the start of the process to the first answer, the medians of ${rounds} alternating rounds, in milliseconds: CPU time of all threads, and time passed. What Tollgate adds includes loading the wasm, the configuration, and the first request.`,
    table(["", "CPU", "more", "passed", "more"], rows),
  ].join("\n\n");
}
