// Lets an export panic, and prints what is left of all limiters. The first argument names the export.
import { armed, counts, instances, limiters, policies, RateLimiter, thrown } from "./lib/arming.mjs";

const calls = {
  hit: () => limiters[2].hit("key"),
  hit_with: () => limiters[2].peek("key"),
  count: () => limiters[2].get("key", "log"),
  release: () => limiters[0].reset(7n),
  clean: () => limiters[2].clean(),
  save: () => limiters[2].snapshot(),
  moves: () => limiters[2].inc("new", 1, "log"),
  create: () => new RateLimiter(policies),
  load: () => RateLimiter.restore(limiters[2].snapshot()),
  input: () => RateLimiter.restore(limiters[2].snapshot()),
};
const [, , name] = process.argv;
armed.add(name);
const panicked = thrown(calls[name]);
const after = counts("key");
limiters[2].reset("new");
const sizes = limiters.map(({ size }) => size);
console.log(JSON.stringify({ panicked, after, other: limiters[0].get(7n, "log"), instances, sizes }));
