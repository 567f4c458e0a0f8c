export { type IpKeyOptions, ipKey } from "./address.ts";
export { type ErrorCode, TollgateError } from "./error.ts";
export { type HeaderOptions, problemBody, rateLimitHeaders } from "./headers.ts";
export { RateLimiter } from "./limiter.ts";
export { type Operation, type Step, step } from "./step.ts";
export type { Timer } from "./throttle/alarm.ts";
export { type FetchOptions, throttledFetch } from "./throttle/fetch.ts";
export type { Place } from "./throttle/places.ts";
export type { Fetch, FetchRequest, FetchResponse, Signal } from "./throttle/platform.ts";
export {
  type AcquireOptions,
  Throttle,
  type ThrottleChange,
  type ThrottleOptions,
} from "./throttle/throttle.ts";
export type { WrapOptions, Wrapped } from "./throttle/wrap.ts";
export type {
  Algorithm,
  Decision,
  Duration,
  Expired,
  Key,
  LeakyBucketPolicy,
  Options,
  Origin,
  Policies,
  Policy,
  PolicyBase,
  Snapshot,
  State,
  StoredKey,
  TokenBucketPolicy,
  WindowPolicy,
} from "./types.ts";
