export type { ThrottleOptions } from "../throttle/basic-throttle.ts";
export type { QueueState } from "../throttle/places.ts";
export { useQueue } from "./use-queue.ts";
export {
  type RateLimitHeaders,
  type RateLimitSource,
  type RateLimitState,
  useRateLimit,
} from "./use-rate-limit.ts";
export { useThrottle } from "./use-throttle.ts";
