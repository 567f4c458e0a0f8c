// Records values of keys, and what they come to: `node tests/redis/lib/record.mjs > tests/redis/corpus.json`.
//
// A value that was recorded must come to the same in every later version, or the number in the keys goes up.

import { RedisLimiter } from "tollgate/redis";
import { seeded } from "../../lib/random.mjs";
import { answers, time0 } from "./corpus.mjs";
import { connect, startServer } from "./server.mjs";
import { ControlledTime } from "./time.mjs";

const random = seeded(20_260_101);

const policies = [
  { algorithm: "fix_window", limit: 20, scale: "1m" },
  { algorithm: "fix_window", limit: 20, scale: "month", utcOffset: "+05:30" },
  { algorithm: "fix_window_per_key", limit: 20, scale: 7_000 },
  { algorithm: "sliding_window", limit: 20, scale: "10s", denied: "count" },
  { algorithm: "sliding_counter", limit: 20, scale: "10s" },
  { algorithm: "token_bucket", capacity: 20, refillRate: 7, per: "3s" },
  { algorithm: "leaky_bucket", capacity: 20, leakRate: 7, per: "3s" },
  [
    { algorithm: "concurrency", limit: 9, ttl: "20s", name: "running" },
    { algorithm: "token_bucket", capacity: 30, refillRate: 3, name: "tokens & more" },
  ],
  [
    { algorithm: "ban", after: 3, scale: "10s", for: "1s", factor: 2, most: "20s", name: "too often" },
    { algorithm: "fix_window_per_key", limit: 5, scale: "2s", name: "window" },
  ],
];

/** The same policies with other numbers, as a later version has them. */
const later = (policy) => {
  if (Array.isArray(policy)) return policy.map(later);
  const [field] = ["limit", "capacity", "after"].filter((name) => name in policy);
  return { ...policy, [field]: policy[field] + 5, ...(policy.scale === "10s" && { scale: "15s" }) };
};

async function use(limiter, made) {
  const { name } = limiter.policies.at(-1);
  const key = "key";
  const deed = random(12);
  if (deed < 6 && !limiter.policies.some(({ algorithm }) => algorithm === "concurrency"))
    return limiter.hit(key, 1 + random(4));
  if (deed < 9) return made.push((await limiter.reserve(key, 1 + random(3), { ttl: 1 + random(9_000) })).id);
  if (deed < 10)
    return limiter.settle(made.filter(Boolean).at(-1 - random(3)) ?? made.find(Boolean), random(3));
  return limiter.inc(key, random(9) - 3, name ?? limiter.policies.at(-1).algorithm);
}

const server = await startServer();
const redis = connect(server.port);
const corpus = [];
for (const [number, own] of policies.entries()) {
  for (const length of [3, 14, 60]) {
    const time = new ControlledTime(redis, time0);
    const options = { client: time.client, prefix: `${number}:${length}:`, name: "corpus" };
    const fleet = [new RedisLimiter(own, options), new RedisLimiter(later(own), options)];
    const made = [];
    for (let step = 0; step < length; step++) {
      time.now += random(3) === 0 ? random(2_000) : random(3);
      await use(fleet[random(4) === 0 ? 1 : 0], made).catch((error) => {
        if (error.code !== "invalid_reservation") throw error;
      });
    }
    const value = await redis.get(`${options.prefix}4:corpus:key`);
    const at = time.now + random(5_000);
    const expected = await answers(redis, { policies: own, at, value });
    corpus.push({ policies: own, at, value, expected });
    time[Symbol.dispose]();
  }
}

/** The same policies with room for leases. */
const large = (policy) => ({ ...policy, denied: "free", ["limit" in policy ? "limit" : "capacity"]: 400 });

for (const [number, own] of policies
  .filter((policy) => !Array.isArray(policy))
  .map(large)
  .entries()) {
  const time = new ControlledTime(redis, time0);
  const options = { client: time.client, prefix: `leases:${number}:`, name: "corpus", leases: true };
  const fleet = [new RedisLimiter(own, options), new RedisLimiter(later(own), options)];
  for (let step = 0; step < 80; step++) {
    time.now += random(3) === 0 ? random(60) : random(3);
    await fleet[random(4) === 0 ? 1 : 0].hit("key", 1 + random(2));
  }
  // What is under way is done before it.
  for (const limiter of fleet) await limiter.get("key");
  const value = await redis.get(`${options.prefix}4:corpus:key`);
  const at = time.now + random(2_000);
  corpus.push({ policies: own, at, value, expected: await answers(redis, { policies: own, at, value }) });
  time[Symbol.dispose]();
}
console.log(JSON.stringify(corpus, null, 1));
redis.disconnect();
await server.stop();
