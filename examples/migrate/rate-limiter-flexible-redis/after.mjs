import { Redis } from "ioredis";
import { RedisLimiter } from "tollgate/redis";

export const client = new Redis(process.env.REDIS_URL);

const policy = { algorithm: "fix_window_per_key", limit: 5, scale: "1m", denied: "count" };
const limiter = new RedisLimiter(policy, { client, timeout: "2s" });

export async function consume(key, points) {
  const { allowed, remaining, retryAfter } = await limiter.hit(key, points);
  return { allowed, remaining, wait: retryAfter };
}
