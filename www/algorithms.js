/** The algorithms with their titles, descriptions and fields. */
export const algorithms = [
  {
    id: "fix_window",
    title: "Fixed window",
    says: "Counts hits in windows aligned to the clock. Cheap, but a burst on each side of an edge gets through.",
    fields: ["limit", "scale", "denied"],
    windows: "aligned",
  },
  {
    id: "fix_window_per_key",
    title: "Window per key",
    says: "A key's window starts with its first hit, so keys do not share an edge.",
    fields: ["limit", "scale", "denied"],
    windows: "own",
  },
  {
    id: "sliding_window",
    title: "Sliding window",
    says: "Remembers every hit. Exact: never more than the limit in any period as long as the window.",
    fields: ["limit", "scale", "denied"],
  },
  {
    id: "sliding_counter",
    title: "Sliding counter",
    says: "Two counters, the older one weighted by its overlap. Close to a sliding window, in constant memory.",
    fields: ["limit", "scale", "denied"],
    windows: "aligned",
  },
  {
    id: "token_bucket",
    title: "Token bucket",
    says: "Starts full and refills steadily. Allows bursts up to the capacity, then the refill rate.",
    fields: ["capacity", "rate", "per"],
  },
  {
    id: "leaky_bucket",
    title: "Leaky bucket",
    says: "Each hit fills it, time drains it. A hit that would overflow it is denied.",
    fields: ["capacity", "rate", "per"],
  },
  {
    id: "concurrency",
    title: "Concurrency",
    says: "Counts hits that run at the same time. Each hit reserves a slot until it ends.",
    fields: ["limit", "run"],
  },
];

/** The algorithms that decide hits; a concurrency limit also needs the end of each. */
export const ofHits = algorithms.filter(({ id }) => id !== "concurrency");

export const byId = Object.fromEntries(algorithms.map((each) => [each.id, each]));

/** Returns what the largest number of an algorithm is called. */
export const limitName = (id) => (byId[id].fields.includes("capacity") ? "capacity" : "limit");

/** The values of a window's `denied`, and what a denied hit then does. */
export const deniedChoices = [
  ["free", "changes nothing"],
  ["count", "counts too"],
];

const rateNames = { token_bucket: "refillRate", leaky_bucket: "leakRate" };

/** Returns the policy of an algorithm with the numbers on the page. */
export function policyOf(id, { limit, scale, denied, capacity, rate, per, run }) {
  if (id === "concurrency") return { algorithm: id, limit, ttl: duration(run) };
  const rateName = rateNames[id];
  if (rateName) return { algorithm: id, capacity, [rateName]: rate, per: duration(per) };
  return { algorithm: id, limit, scale: duration(scale), denied };
}

/** Returns the policies of a page: an algorithm's, and the ban beside it if there is one. */
export function policiesOf(id, state) {
  const { banAfter, banFor } = state;
  if (banAfter === 0) return [policyOf(id, state)];
  const ban = { algorithm: "ban", after: banAfter, scale: "1m", for: duration(banFor) };
  // Beside other policies a denied hit changes nothing.
  return [policyOf(id, { ...state, denied: "free" }), ban];
}

const units = [
  [60_000, "m"],
  [1_000, "s"],
];

/** Returns milliseconds as a duration of a policy: `"5s"`. */
export function duration(milliseconds) {
  const [length, unit] = units.find(([each]) => milliseconds % each === 0) ?? [1, "ms"];
  return `${milliseconds / length}${unit}`;
}
