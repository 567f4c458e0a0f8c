// Prints whether headers and bodies are the same after calls with less and less of the stack left.
import { problemBody, RateLimiter, rateLimitHeaders } from "tollgate";
import { atEveryDepth } from "../lib/depths.mjs";

const policies = [{ algorithm: "fix_window", limit: 1, scale: "1m", name: "burst" }];
const limiter = new RateLimiter(policies, { clock: () => 0 });
limiter.hit("a");
const denied = limiter.hit("a");
const works = [
  () => rateLimitHeaders(denied, policies, { legacy: true }),
  () => problemBody(denied, policies),
  // Policies that were not seen before are checked by the wasm.
  () => rateLimitHeaders(denied, [{ ...policies[0] }]),
];
const written = () => JSON.stringify(works.map((work) => work()));
const expected = written();
const rounds = Array.from({ length: 10 }, () => works.map((work) => atEveryDepth(work))).flat();
console.log(JSON.stringify({ thrown: rounds.every((thrown) => thrown > 0), same: written() === expected }));
