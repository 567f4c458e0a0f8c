import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inProject } from "../../scripts/lib/paths.mjs";
import { prepare, start } from "../../scripts/lib/workerd.mjs";
import { median, table } from "../results.mjs";
import { gateway, upstream, worker } from "./subjects.mjs";

const rounds = 11;

const programs = {
  "a Worker that passes on": { entry: worker("pass.js"), upstream },
  "Tollgate's gateway": { entry: inProject("js/cloudflare/worker.ts"), upstream, bindings: gateway({}) },
};

/** From the start of the process to its first answer, in milliseconds. */
async function firstAnswer(folder) {
  const from = performance.now();
  const { url, kill } = await start(folder, { output: "ignore" });
  try {
    const response = await fetch(`${url}/elsewhere`);
    if ((await response.text()) !== "hello\n") throw new Error(`the first answer was ${response.status}`);
    return performance.now() - from;
  } finally {
    await kill();
  }
}

/** How long the wasm takes to be compiled and to be instantiated, in milliseconds. */
async function wasm() {
  const bytes = readFileSync(inProject("build/worker/tollgate_bg.wasm"));
  const { initSync } = await import(inProject("build/worker/tollgate.js"));
  const timed = (work) => {
    const from = performance.now();
    return [work(), performance.now() - from];
  };
  const [module, compiled] = timed(() => new WebAssembly.Module(bytes));
  const [, instantiated] = timed(() => initSync({ module }));
  return { compiled, instantiated };
}

export async function startup() {
  process.stderr.write("  start-up\n");
  const { compiled, instantiated } = await wasm();
  const folder = mkdtempSync(join(tmpdir(), "tollgate-bench-"));
  const times = Object.fromEntries(Object.keys(programs).map((name) => [name, []]));
  try {
    for (const [name, { entry, ...options }] of Object.entries(programs)) {
      mkdirSync(join(folder, name));
      await prepare(join(folder, name), entry, options);
    }
    for (let round = 0; round < rounds; round += 1)
      for (const name of Object.keys(programs)) times[name].push(await firstAnswer(join(folder, name)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const [empty, own] = Object.values(times).map(median);
  const rows = Object.entries(times).map(([name, all]) => [name, median(all).toFixed(1)]);
  return [
    "### Start-up",
    `From the start of the process to the first answer, the median of ${rounds} alternating rounds. Tollgate takes ${(own - empty).toFixed(1)} ms of it: the script, the wasm (compiled in ${compiled.toFixed(1)} ms and instantiated in ${instantiated.toFixed(1)} ms when Node does it) and the configuration.`,
    table(["", "ms"], rows),
  ].join("\n\n");
}
