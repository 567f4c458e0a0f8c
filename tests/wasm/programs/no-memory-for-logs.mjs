// Fills the memory with the hits of a log, and prints which errors other calls have.
import { RateLimiter } from "tollgate";
import { now as start } from "./lib/now.mjs";

let now = start;
const clock = () => now++;
const log = { algorithm: "sliding_window", limit: 1_000_000, scale: "1d" };
const limiter = new RateLimiter(log, { clock });
const code = (work) => {
  try {
    work();
    return "none";
  } catch (error) {
    return error.code ?? String(error);
  }
};
let hits = 0;
const hit = code(() => {
  for (; ; hits++) limiter.hit("log");
});
const count = limiter.get("log");
const policies = Array.from({ length: 32 }, (_, at) => ({ ...log, name: `p${at}` }));
const made = new Set();
const limiters = [];
for (let at = 0; at < 500; at++) made.add(code(() => limiters.push(new RateLimiter(policies, { clock }))));
for (const each of limiters) made.add(code(() => each.hit("key")));
const snapshot = code(() => limiter.snapshot());
const states = [Array.from({ length: 900_000 }, (_, _at) => 1)];
const keys = Array.from({ length: 50 }, (_, at) => [at, states]);
const restore = code(() =>
  RateLimiter.restore(
    { version: limiters.version ?? new RateLimiter(log).snapshot().version, policies: [log], keys },
    { clock },
  ),
);
limiter.reset("log");
const again = limiter.hit("log").allowed;
console.log(JSON.stringify({ hit, kept: count === hits, made: [...made].sort(), snapshot, restore, again }));
