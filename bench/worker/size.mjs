import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { inProject } from "../../scripts/lib/paths.mjs";
import { bundled } from "../../scripts/lib/workerd.mjs";
import { table } from "../results.mjs";

/** What is deployed: the script, minified, and the wasm beside it. */
export async function size() {
  const files = {
    script: await bundled(inProject("js/cloudflare/worker.ts"), { minify: true }),
    wasm: readFileSync(inProject("build/worker/tollgate_bg.wasm")),
  };
  const rows = Object.entries(files).map(([name, bytes]) => [
    name,
    bytes.length,
    gzipSync(bytes, { level: 9 }).length,
  ]);
  const sum = (column) => rows.reduce((total, row) => total + row[column], 0);
  const shown = [...rows, ["together", sum(1), sum(2)]].map(([name, ...sizes]) => [
    name,
    ...sizes.map((bytes) => (bytes / 1_000).toFixed(1)),
  ]);
  return `### Size\n\n${table(["kB", "minified", "gzipped"], shown)}`;
}
