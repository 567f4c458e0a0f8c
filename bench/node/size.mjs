import { basename } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { table } from "../results.mjs";

const entries = {
  "tollgate, RateLimiter alone": 'export { RateLimiter } from "tollgate"',
  "tollgate, everything": 'export * from "tollgate"',
  "tollgate/throttle, throttledFetch alone": 'export { throttledFetch } from "tollgate/throttle"',
  "tollgate/js, RateLimiter alone": 'export { RateLimiter } from "tollgate/js"',
  limiter: 'export { RateLimiter } from "limiter"',
  "@upstash/ratelimit": 'export { Ratelimit } from "@upstash/ratelimit"',
  bottleneck: 'export { default } from "bottleneck"',
  "rate-limiter-flexible, memory alone": 'export { RateLimiterMemory } from "rate-limiter-flexible"',
};

/** Bytes for a browser: bundled, minified, gzipped. What a page may load later is not counted. */
async function bytes(contents) {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    splitting: true,
    outdir: "out",
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "browser",
    external: ["node:*", "crypto", "perf_hooks", "cluster"],
    logLevel: "error",
  });
  const zipped = new Map(
    outputFiles.map(({ path, contents }) => [basename(path), gzipSync(contents, { level: 9 }).length]),
  );
  const first = new Set(["stdin.js"]);
  for (const name of first)
    for (const { path, kind } of metafile.outputs[`out/${name}`].imports)
      if (kind === "import-statement" && path.startsWith("out/")) first.add(basename(path));
  return [...first].reduce((sum, name) => sum + zipped.get(name), 0);
}

export async function size() {
  process.stderr.write("  size\n");
  const rows = [];
  for (const [name, contents] of Object.entries(entries))
    rows.push([name, ((await bytes(contents)) / 1_000).toFixed(1)]);
  return `### Size in a browser's bundle\n\n${table(["minified and gzipped", "kB"], rows)}`;
}
