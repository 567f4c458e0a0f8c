// Cleans expired keys without memory, and prints how many new keys take their place.
import { RateLimiter } from "tollgate";
import { now as start } from "./lib/now.mjs";

let now = start;
let reported = 0;
const options = { clock: () => now, beforeClean: (_, entries) => (reported += entries.length) };
const filled = (more) => {
  const limiter = new RateLimiter({ algorithm: "sliding_window", limit: 9, scale: "1m" }, more);
  let keys = 0;
  try {
    for (; ; keys++) limiter.hit(keys);
  } catch ({ code }) {
    if (code !== "out_of_memory") throw code;
  }
  return [limiter, keys];
};
const [limiter, keys] = filled(options);
now += 3_600_000;
const before = limiter.get(3);
const removed = limiter.clean();
const after = limiter.hit("again").remaining;
limiter[Symbol.dispose]();

// Only new keys come, and everything has ended: they are let in, at the latest after looking at every slot.
const [flooded, most] = filled({ clock: () => now });
now += 3_600_000;
let allowed = 0;
for (let key = 0; key < most; key++)
  try {
    allowed += Number(flooded.hit(`new:${key}`).allowed);
  } catch ({ code }) {
    if (code !== "out_of_memory") throw code;
  }
console.log(
  JSON.stringify({ all: removed === keys && reported === keys, before, after, allowed: allowed / most }),
);
