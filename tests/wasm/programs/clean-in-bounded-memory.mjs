// Cleans a great many states in a memory that is nearly full, and prints how many were reported at once.
import { RateLimiter } from "tollgate";

let now = 0;
const policies = Array.from({ length: 32 }, (_, at) => ({
  algorithm: "fix_window_per_key",
  limit: 5,
  scale: 1_000,
  name: `p${at}`,
}));
let [reported, most] = [0, 0];
const limiter = new RateLimiter(policies, {
  clock: () => now,
  cleanPeriod: "1d",
  beforeClean: (_, entries) => {
    reported += entries.length;
    most = Math.max(most, entries.length);
  },
});
// What is reported of one part must fit: a megabyte.
const room = new RateLimiter(
  { algorithm: "sliding_window", limit: 65_536, scale: "1d" },
  { clock: () => now++ },
);
for (let at = 0; at < 65_536; at++) for (const log of ["a", "b", "c"]) room.hit(log);
now = 1_000_000;
let keys = 0;
try {
  for (; ; keys++) limiter.hit(keys);
} catch (error) {
  if (error.code !== "out_of_memory") throw error;
}
room[Symbol.dispose]();
now += 10_000;
const removed = limiter.clean();
console.log(
  JSON.stringify({ all: removed === keys, reported: reported === 32 * removed, most, left: limiter.size }),
);
