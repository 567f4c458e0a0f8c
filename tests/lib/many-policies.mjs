import { seeded } from "./random.mjs";

/** How many policies are tested on one key. The last is as many as a key may have rows. */
export const counts = [10, 24, 40, 256];

/** So long that no window ends while a test runs, and no bucket gives anything back. */
const scale = "365d";

const algorithms = [
  (limit) => ({ algorithm: "fix_window", limit, scale }),
  (capacity) => ({ algorithm: "token_bucket", capacity, refillRate: 1, per: scale }),
  (limit) => ({ algorithm: "sliding_window", limit, scale }),
  (limit) => ({ algorithm: "fix_window_per_key", limit, scale }),
  (capacity) => ({ algorithm: "leaky_bucket", capacity, leakRate: 1, per: scale }),
  (limit) => ({ algorithm: "sliding_counter", limit, scale }),
];

/** The limits of the policies: small, so that many policies take few hits, or `times` as large, so that keys are hot. */
const limitAt = (number, times = 1) => times * (1 + (number % 3));

/**
 * Returns policies by their names, of all algorithms in turn and with limits of their own: so many, and one more, which is one
 * too many for a key that has the most rows.
 */
export const policiesOf = (count, times) =>
  Object.fromEntries(
    Array.from({ length: count + 1 }, (_, number) => [
      `p${number}`,
      algorithms[number % algorithms.length](limitAt(number, times)),
    ]),
  );

/** Returns lists of 2 to 8 of the policies, the same ones in every run. Most policies are in several. */
export function mixedLists(count) {
  const random = seeded(count);
  return Array.from({ length: Math.ceil(count / 2) }, () => {
    const list = new Set();
    for (let size = 2 + random(7); list.size < size; ) list.add(`p${random(count)}`);
    return [...list];
  });
}

/** Returns a key's policies by name with how much of each is left. */
const unused = (count, times) =>
  new Map(Array.from({ length: count }, (_, number) => [`p${number}`, limitAt(number, times)]));

/** Hits under a list of policies, and throws if the key decides otherwise than limits that are each policy's own. */
async function checkedHit(left, list, hit) {
  const expected = list.every((name) => left.get(name) > 0);
  const found = await hit(list);
  if (found !== expected)
    throw new Error(`${list}: allowed ${found}, with ${list.map((name) => left.get(name))} left`);
  if (found) for (const name of list) left.set(name, left.get(name) - 1);
}

/** Hits each policy alone, in turn, until it has denied. Each hit must be decided by what is left of that policy. */
async function exhaust(left, hit) {
  for (let mayAllow = true; mayAllow; ) {
    mayAllow = left.values().some((rest) => rest > 0);
    for (const name of left.keys()) await checkedHit(left, [name], hit);
  }
}

/** Checks that each of many policies on one key, one named by each call, admits exactly its limit. */
export const eachAlone = (count, hit, times) => exhaust(unused(count, times), hit);

/** Checks the same of policies that calls name in lists of several, which share policies. */
export async function eachInLists(count, hit) {
  const left = unused(count);
  for (let round = 0; round < 2; round += 1)
    for (const list of mixedLists(count)) await checkedHit(left, list, hit);
  await exhaust(left, hit);
}

/**
 * Checks that a call under one policy more than a key may have is the error `full`, which changes nothing. `hit` throws errors
 * with a code, and `counted` returns how much of a policy was used.
 */
export async function oneTooMany({ hit, counted }) {
  const count = counts.at(-1);
  const left = unused(count);
  for (const name of left.keys()) await checkedHit(left, [name], hit);
  for (const list of [[`p${count}`], ["p0", `p${count}`, "p1"]]) {
    const code = await hit(list).then(
      (allowed) => `allowed ${allowed}`,
      (error) => error.code,
    );
    if (code !== "full") throw new Error(`${list}: ${code}`);
  }
  for (const [name, rest] of [...left, [`p${count}`, limitAt(count)]]) {
    const used = await counted(name);
    const limit = limitAt(Number(name.slice(1)));
    if (used !== limit - rest) throw new Error(`${name}: ${used} used of ${limit}, and ${rest} left`);
  }
  // The policies that have a row go on.
  await exhaust(left, hit);
}

/** Returns how much of a policy was used, by the count of `get`, which for a token bucket is what is left. */
export const usedBy = (policy, count) =>
  policy.algorithm === "token_bucket" ? policy.capacity - count : count;

/** Returns one key as a surface whose limiters have policies of their own: `make` makes one for each list that is named. */
export function limitersUnder(policies, make, key = "a") {
  const limiters = new Map();
  const of = (names) => {
    const list = names.join();
    if (!limiters.has(list)) limiters.set(list, make(names.map((name) => ({ ...policies[name], name }))));
    return limiters.get(list);
  };
  return {
    hit: async (names) => (await of(names).hit(key)).allowed,
    counted: async (name) => usedBy(policies[name], await of([name]).get(key)),
  };
}
