// Lets an export panic after its work, and prints which key is lost.
import { armed, limiters, panics, thrown } from "./lib/arming.mjs";

panics.afterwards = true;
limiters[1].hit("other", 4);
armed.add("release");
const panicked = thrown(() => limiters[1].reset("key"));
const next = thrown(() => limiters[1].get("other", "window"));
console.log(
  JSON.stringify({
    panicked,
    next: next === "nothing" || next === "state_lost",
    other: limiters[1].get("other", "window"),
    key: limiters[1].get("key", "window"),
  }),
);
