// Fills the memory with keys, and prints what still works.
import { RateLimiter } from "tollgate";
import { now } from "./lib/now.mjs";

const clock = () => now;
const policies = Array.from({ length: 8 }, (_, at) => ({
  algorithm: "sliding_counter",
  limit: 100,
  scale: 60_000 + at,
  name: `p${at}`,
}));
const limiter = new RateLimiter(policies, { clock });
const other = new RateLimiter({ algorithm: "fix_window", limit: 5, scale: "1h" }, { clock });
other.hit("neighbour");
let [keys, error] = [0];
try {
  for (; ; keys++) limiter.hit(`key:${keys}`);
} catch (thrown) {
  error = thrown;
}
const twice = [];
for (const call of ["hit", "inc", "set"])
  try {
    limiter[call]("new", 1, call === "hit" ? undefined : "p0");
  } catch ({ code }) {
    twice.push(code);
  }
const [size, again, neighbour] = [limiter.size, limiter.hit("key:7").count, other.hit("neighbour").count];
const peeked = limiter.peek("new").count;
for (let at = 0; at < 100; at++) limiter.reset(`key:${at}`);
const reused = Array.from({ length: 100 }, (_, at) => limiter.hit(`again:${at}`).allowed).every(Boolean);
limiter[Symbol.dispose]();
const third = new RateLimiter(policies, { clock });
for (let at = 0; at < keys; at++) third.hit(at);
console.log(
  JSON.stringify({
    code: error.code,
    name: error.name,
    twice,
    same: size === keys,
    again,
    neighbour,
    peeked,
    reused,
    third: third.size === keys,
  }),
);
