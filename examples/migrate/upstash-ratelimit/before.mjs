import { Ratelimit } from "@upstash/ratelimit";
import { redis } from "./redis.mjs"; // In production: Redis.fromEnv()

const limiter = new Ratelimit({ redis, limiter: Ratelimit.fixedWindow(5, "1 d") });

export async function ask(key) {
  const { success, limit, remaining, reset } = await limiter.limit(key);
  return { allowed: success, limit, remaining, reset };
}
