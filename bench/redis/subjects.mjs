// The limiters that are compared, each over one ioredis client: a function that hits a key and says whether it may act.

import { Redis } from "ioredis";
import { RedisStore } from "rate-limit-redis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { RedisLimiter } from "tollgate/redis";

export const packages = ["ioredis", "rate-limiter-flexible", "rate-limit-redis"];

const hour = 3_600;

/** A limiter of rate-limiter-flexible, where a denial is thrown. */
function flexible(client, limit, options = {}) {
  const limiter = new RateLimiterRedis({ storeClient: client, points: limit, duration: hour, ...options });
  return (key) =>
    limiter.consume(key).then(
      () => true,
      (denied) => {
        if (denied instanceof Error) throw denied;
        return false;
      },
    );
}

function tollgate(client, limit, options = {}) {
  const policy = { algorithm: "fix_window_per_key", limit, scale: "1h" };
  const limiter = new RedisLimiter(policy, { client, timeout: "20s", ...options });
  const hit = async (key) => (await limiter.hit(key)).allowed;
  // Otherwise it would give leases back while others are measured.
  return Object.assign(hit, { end: () => limiter[Symbol.dispose]() });
}

/** So many limiters with other policies on one prefix, as rules are that count by address: each key is hit by turns. */
function inTurn(client, limit, count) {
  const limiters = Array.from({ length: count }, (_, number) => {
    const policy = { algorithm: "fix_window_per_key", limit, scale: "1h", name: `rule ${number}` };
    return new RedisLimiter(policy, { client, timeout: "20s" });
  });
  const turns = new Map();
  return async (key) => {
    const turn = turns.get(key) ?? 0;
    turns.set(key, (turn + 1) % count);
    return (await limiters[turn].hit(key)).allowed;
  };
}

/** Limiters that are compared with each other only. */
export const rules = {
  "one limiter": (client, limit) => inTurn(client, limit, 1),
  "four limiters in turn": (client, limit) => inTurn(client, limit, 4),
};

export const subjects = {
  tollgate: (client, limit) => tollgate(client, limit),
  "tollgate, leases of 1 s": (client, limit) => tollgate(client, limit, { leases: true }),
  "tollgate, leases of 10 s": (client, limit) => tollgate(client, limit, { leases: { ttl: "10s" } }),
  "rate-limiter-flexible": (client, limit) => flexible(client, limit),
  "rate-limiter-flexible, blocking in memory": (client, limit) =>
    flexible(client, limit, { inMemoryBlockOnConsumed: limit }),
  async "rate-limit-redis"(client, limit) {
    const store = new RedisStore({ sendCommand: (...args) => client.call(...args) });
    await store.init({ windowMs: 1_000 * hour });
    return async (key) => (await store.increment(key)).totalHits <= limit;
  },
};

export const connect = (port) => new Redis({ port, host: "127.0.0.1" });
