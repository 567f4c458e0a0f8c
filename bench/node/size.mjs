import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { table } from "../results.mjs";

const entries = {
  "tollgate, RateLimiter alone": 'export { RateLimiter } from "tollgate"',
  "tollgate, everything": 'export * from "tollgate"',
  limiter: 'export { RateLimiter } from "limiter"',
  "@upstash/ratelimit": 'export { Ratelimit } from "@upstash/ratelimit"',
  bottleneck: 'export { default } from "bottleneck"',
  "rate-limiter-flexible, memory alone": 'export { RateLimiterMemory } from "rate-limiter-flexible"',
};

/** Bytes for a browser: bundled, minified, gzipped. */
async function bytes(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform: "browser",
    external: ["node:*", "crypto", "perf_hooks", "cluster"],
    logLevel: "error",
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

export async function size() {
  process.stderr.write("  size\n");
  const rows = [];
  for (const [name, contents] of Object.entries(entries))
    rows.push([name, ((await bytes(contents)) / 1_000).toFixed(1)]);
  return `### Size in a browser's bundle\n\n${table(["minified and gzipped", "kB"], rows)}`;
}
