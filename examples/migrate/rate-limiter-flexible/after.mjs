import { RateLimiter } from "tollgate";

const limiter = new RateLimiter({ algorithm: "fix_window_per_key", limit: 5, scale: "1m", denied: "count" });

export function consume(key, points) {
  const { allowed, remaining, retryAfter } = limiter.hit(key, points);
  return { allowed, remaining, wait: retryAfter };
}
