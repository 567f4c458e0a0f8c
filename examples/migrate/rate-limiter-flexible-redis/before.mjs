import { Redis } from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";

export const client = new Redis(process.env.REDIS_URL);

const limiter = new RateLimiterRedis({ storeClient: client, points: 5, duration: 60 });

export async function consume(key, points) {
  try {
    const { remainingPoints } = await limiter.consume(key, points);
    return { allowed: true, remaining: remainingPoints, wait: 0 };
  } catch (denied) {
    if (denied instanceof Error) throw denied;
    return { allowed: false, remaining: denied.remainingPoints, wait: denied.msBeforeNext };
  }
}
