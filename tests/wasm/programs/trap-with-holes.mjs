// Resets some of the keys, lets an export panic, and prints the counts of all keys, also after hits on all.
import { armed, RateLimiter, thrown } from "./lib/arming.mjs";
import { now } from "./lib/now.mjs";

const limiter = new RateLimiter({ algorithm: "fix_window", limit: 9, scale: "1h" }, { clock: () => now });
const keys = ["a", "b", "c", "d", "e"];
for (const [at, key] of keys.entries()) limiter.hit(key, at + 1);
for (const key of ["b", "d"]) limiter.reset(key);
armed.add("hit");
thrown(() => limiter.hit("a"));
const counts = keys.map((key) => limiter.get(key));
const after = keys.map((key) => limiter.hit(key).count);
console.log(JSON.stringify({ counts, after, size: limiter.size }));
