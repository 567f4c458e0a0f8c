// Lets an export panic after a policy's scale has changed, and prints what both scales admit.
import { armed, RateLimiter, thrown } from "./lib/arming.mjs";
import { now } from "./lib/now.mjs";

let time = now;
const policyOf = (scale) => ({ algorithm: "fix_window_per_key", limit: 5, scale, denied: "free" });
const clock2 = () => time;
let limiter = new RateLimiter(policyOf("1d"), { clock: clock2 });
const admitted = () => Array.from({ length: 9 }, () => limiter.hit("key").allowed).filter(Boolean).length;
const first = admitted();
limiter = RateLimiter.restore(limiter.snapshot(), { clock: clock2, policies: policyOf("1s") });
armed.add("count");
const panicked = thrown(() => limiter.get("key"));
const others = limiter.snapshot().keys[0][1].filter(([, , scale]) => scale !== 1_000).length;
time += 3_000;
limiter = RateLimiter.restore(limiter.snapshot(), { clock: clock2, policies: policyOf("1d") });
console.log(JSON.stringify({ first, panicked, others, second: admitted() }));
