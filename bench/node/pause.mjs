import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { MemoryStore } from "express-rate-limit";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { RateLimiter } from "tollgate";
import { table } from "../results.mjs";
import { keysOf } from "./subjects.mjs";

const count = 1_000_000;
const fill = keysOf(count);

/** The longest of a million hits of one key, in milliseconds, while a million other keys expire and are swept. */
const subjects = {
  tollgate() {
    let now = 0;
    const limiter = new RateLimiter(
      { algorithm: "fix_window", limit: 1_000_000_000, scale: 1_000 },
      { clock: () => now, maxKeys: count + 1, cleanPeriod: 1_000 },
    );
    for (const key of fill) limiter.hit(key);
    now = 5_000;
    let longest = 0;
    for (let at = 0; at < 400_000; at++) {
      const started = performance.now();
      limiter.hit("hot");
      longest = Math.max(longest, performance.now() - started);
    }
    if (limiter.size !== 1) throw new Error(`${limiter.size} keys are left`);
    return longest;
  },

  /** Its timer moves one generation out at a time: the pause is the length of that timer's work. */
  async "express-rate-limit MemoryStore, its timer"() {
    const store = new MemoryStore();
    store.init({ windowMs: 3_600_000 });
    for (const key of fill) await store.increment(key);
    const started = performance.now();
    store.clearExpired();
    store.clearExpired();
    const took = performance.now() - started;
    store.shutdown();
    return took;
  },

  /** One timer for each key: the pause is how long the loop is held while they fire. */
  async "rate-limiter-flexible, its timers"() {
    const limiter = new RateLimiterMemory({ points: 1_000_000_000, duration: 20 });
    for (const key of fill) await limiter.consume(key, 1);
    let longest = 0;
    let last = performance.now();
    const until = last + 26_000;
    while (last < until) {
      await new Promise(setImmediate);
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
    }
    return longest;
  },
};

export function pause() {
  const rows = Object.keys(subjects).map((name) => {
    process.stderr.write(`  pause of ${name}\n`);
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      ["--max-old-space-size=8192", fileURLToPath(import.meta.url), name],
      { encoding: "utf8" },
    );
    if (status !== 0) throw new Error(stderr);
    return [name, Number(stdout).toFixed(2)];
  });
  return `### The longest pause while a million keys expire\n\n${table(["", "ms"], rows)}\n\nGarbage collection is included.`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await subjects[process.argv[2]]());
