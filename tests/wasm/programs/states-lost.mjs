// Lets an export panic, and the rescue of a limiter's states too; prints what is left.
import { armed, counts, limiters, thrown } from "./lib/arming.mjs";

armed.add("hit");
const panicked = thrown(() => limiters[1].hit("key"));
armed.add("rescue");
const lost = thrown(() => limiters[2].hit("key"));
const after = counts("key").map((row) => row.join());
const again = limiters[2].hit("key").remaining;
console.log(JSON.stringify({ panicked, lost, after, again }));
