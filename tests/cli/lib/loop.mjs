import { RateLimiter } from "../../../dist/node.js";

/** What replay prints, by a plain loop over a limiter. */
export function looped(hits, policies, { keyOf = ({ ip }) => ip, costOf = () => 1 } = {}) {
  let now = 0;
  const limiter = new RateLimiter(policies, { clock: () => now });
  const keys = new Map();
  let allowed = 0;
  for (const hit of hits) {
    now = hit.time;
    const key = keyOf(hit);
    const decision = limiter.hit(key, costOf(hit));
    const told = keys.get(key) ?? { key, hits: 0, denied: 0, longestWait: 0 };
    keys.set(key, told);
    told.hits += 1;
    if (decision.allowed) allowed += 1;
    else {
      told.denied += 1;
      told.longestWait = Math.max(told.longestWait, decision.retryAfter);
    }
  }
  const denied = [...keys.values()].filter((told) => told.denied > 0);
  return {
    hits: hits.length,
    allowed,
    denied: hits.length - allowed,
    keys: keys.size,
    keysDenied: denied.length,
    worst: denied.sort((one, other) => other.denied - one.denied),
  };
}

/** The same of a summary, all keys that were denied included; `samples.test.mjs` compares their samples. */
export const comparable = ({ hits, allowed, denied, keys, keysDenied, worst }) => ({
  hits,
  allowed,
  denied,
  keys,
  keysDenied,
  worst: worst.map(({ samples, ...denied }) => denied),
});

/** Keys that were denied equally often have no order. */
export const sorted = (told) => ({
  ...told,
  worst: told.worst.toSorted((one, other) => other.denied - one.denied || (one.key < other.key ? -1 : 1)),
});
