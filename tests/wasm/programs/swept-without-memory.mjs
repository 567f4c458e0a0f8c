// Lets operations sweep and then run out of memory. Prints the errors, and how many hits of a swept key are allowed.
import { RateLimiter } from "tollgate";
import { now as start } from "./lib/now.mjs";

let now = start;
const clock = () => now;
const code = (work) => {
  try {
    work();
    return "none";
  } catch (error) {
    return error.code ?? String(error);
  }
};
const operations = {
  reserve: (limiter) => limiter.reserve(1),
  except: (limiter) => limiter.except(1, { limit: 9 }, { for: "1d" }),
};
// One limiter for each key that is swept: its first hit is at stake.
const limiters = Object.keys(operations).flatMap((name) =>
  [0, 2, 3].map((key) => ({
    name,
    key,
    limiter: new RateLimiter({ algorithm: "sliding_window", limit: 5, scale: "1m" }, { clock }),
  })),
);
for (const { limiter } of limiters) for (let key = 0; key < 256; key++) limiter.hit(key);

// Logs of all sizes fill the memory, the smallest last.
const log = new RateLimiter({ algorithm: "sliding_window", limit: 1_000_000, scale: "365d" }, { clock });
for (let key = 0; code(() => log.hit(key)) === "none"; key++);
for (let size = 4_096; size > 1; size /= 2)
  for (let key = 0; key < 2_000; key++) {
    if (code(() => log.inc(key, 1)) !== "none") break;
    now += 1;
  }
now += 120_000;

const found = {};
for (const { name, key, limiter } of limiters) {
  const size = limiter.size;
  found[name] ??= { errors: [], allowed: [], freed: [] };
  found[name].errors.push(code(() => operations[name](limiter)));
  found[name].freed.push(size - limiter.size);
  found[name].allowed.push(Array.from({ length: 9 }, () => limiter.hit(key).allowed).filter(Boolean).length);
}
console.log(JSON.stringify(found));
