import { spawnSync } from "node:child_process";
import { table } from "../results.mjs";

const rounds = 15;

/** From the start of an import to the first decision, in a fresh process. */
const programs = {
  tollgate: `const { RateLimiter } = await import("tollgate");
    new RateLimiter({ algorithm: "fix_window", limit: 9, scale: "1m" }).hit("key");`,
  limiter: `const { RateLimiter } = await import("limiter");
    new RateLimiter({ tokensPerInterval: 9, interval: 60000 }).tryRemoveTokens(1);`,
  "express-rate-limit MemoryStore": `const { MemoryStore } = await import("express-rate-limit");
    const store = new MemoryStore(); store.init({ windowMs: 60000 }); await store.increment("key"); store.shutdown();`,
  "rate-limiter-flexible memory": `const { RateLimiterMemory } = await import("rate-limiter-flexible");
    await new RateLimiterMemory({ points: 9, duration: 60 }).consume("key");`,
};

function once(program) {
  const code = `const started = performance.now(); ${program} console.log(performance.now() - started); process.exit(0);`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
    encoding: "utf8",
    cwd: import.meta.dirname,
  });
  if (status !== 0) throw new Error(stderr);
  return Number(stdout);
}

export function startup() {
  process.stderr.write("  start-up\n");
  const best = Object.fromEntries(Object.keys(programs).map((name) => [name, Number.POSITIVE_INFINITY]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, program] of Object.entries(programs)) best[name] = Math.min(best[name], once(program));
  }
  const rows = Object.entries(best).map(([name, took]) => [
    name,
    took.toFixed(1),
    (took / best.tollgate).toFixed(2),
  ]);
  return `### From import to the first decision\n\n${table(["", "ms", "÷ tollgate"], rows)}`;
}
