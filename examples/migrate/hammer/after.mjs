import { RateLimiter } from "tollgate";

// Hammer takes the scale with each call. Here it belongs to the limiter, so there is one for each scale.
const limiters = new Map();

function limiterOf(scale) {
  if (!limiters.has(scale))
    limiters.set(scale, new RateLimiter({ algorithm: "fix_window", limit: 1, scale, denied: "count" }));
  return limiters.get(scale);
}

export function hit(key, scale, limit, increment = 1) {
  const decision = limiterOf(scale).hit(key, increment, { algorithm: "fix_window", limit, scale });
  return decision.allowed ? { allow: decision.count } : { deny: decision.retryAfter };
}

export const inc = (key, scale, increment = 1) => limiterOf(scale).inc(key, increment);
export const set = (key, scale, count) => limiterOf(scale).set(key, count);
export const get = (key, scale) => limiterOf(scale).get(key);
export const expiresAt = (key, scale) => limiterOf(scale).expiresAt(key);
