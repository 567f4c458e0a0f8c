// Hits a limiter while a subscriber of its decisions throws.

import { subscribe } from "node:diagnostics_channel";
import { RateLimiter } from "tollgate";

const errors = [];
process.on("uncaughtException", ({ message }) => errors.push(message));
subscribe("tollgate:decision", () => {
  throw new Error("mine");
});
const limiter = new RateLimiter({ algorithm: "fix_window", limit: 2, scale: "1h" });
const decisions = [1, 2, 3].map(() => limiter.hit("a").allowed);
setImmediate(() => console.log(JSON.stringify({ decisions, errors })));
