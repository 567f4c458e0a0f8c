// In Hermes: every trace by `tollgate/js` in memory, and calls that wait for a throttle. Prints what differs, and what ran.

import traces from "tollgate:traces";
import { RateLimiter, Throttle } from "tollgate/js";
import { inWordsOf } from "../../lib/trace-words.mjs";

function resultOf(limiter, { op, key, cost, count }) {
  if (op === "hit") return limiter.hit(key, cost);
  if (op === "inc") return limiter.inc(key, cost);
  if (op === "set") return limiter.set(key, count);
  return op === "get" ? limiter.get(key) : limiter.expiresAt(key);
}

let operations = 0;
const different = [];
for (const { policy, ops } of traces) {
  let now = 0;
  const limiter = new RateLimiter(policy, { clock: () => now });
  for (const operation of ops) {
    now = operation.at;
    const found = inWordsOf(operation.expect, resultOf(limiter, operation));
    operations += 1;
    if (JSON.stringify(found) !== JSON.stringify(operation.expect)) different.push({ operation, found });
  }
}

let now = 0;
let due;
const timer = (callback, wait) => {
  due = { callback, at: now + wait };
  return () => {
    due = undefined;
  };
};
const policy = { algorithm: "fix_window_per_key", limit: 2, scale: 1_000 };
const throttle = new Throttle(policy, { clock: () => now, timer });
const ran = [];
const calls = [1, 2, 3, 4, 5].map((call) => throttle.acquire().then(() => ran.push([call, now])));

/** Moves the clock to the timer, again and again, each time after all that is under way. */
function ring() {
  if (due === undefined) return;
  const { callback, at } = due;
  due = undefined;
  now = at;
  callback();
  setTimeout(ring, 0);
}
setTimeout(ring, 0);
const hasWasm = typeof WebAssembly !== "undefined";
Promise.all(calls).then(() =>
  print(JSON.stringify({ hasWasm, operations, different: different.slice(0, 3), ran })),
);
