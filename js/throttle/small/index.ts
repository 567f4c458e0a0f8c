export { type ErrorCode, TollgateError } from "../../errors/error.ts";
export type {
  Algorithm,
  BanPolicy,
  CalendarPolicy,
  ConcurrencyPolicy,
  Decision,
  Duration,
  Key,
  LeakyBucketPolicy,
  Policies,
  Policy,
  PolicyBase,
  TokenBucketPolicy,
  UtcOffset,
  WindowPolicy,
} from "../../types.ts";
export type { Timer } from "../alarm.ts";
export type {
  AcquireOptions,
  BasicThrottle,
  FairCall,
  ThrottleChange,
  ThrottleOptions,
} from "../basic-throttle.ts";
export type { BatchOptions, BatchResult } from "../batch.ts";
export type { FetchOptions } from "../fetch.ts";
export type { Place, QueueState } from "../places.ts";
export type { Fetch, FetchRequest, FetchResponse, Signal } from "../platform.ts";
export type { WrapOptions, Wrapped } from "../wrap.ts";
export { Throttle } from "./throttle.ts";
export { throttledFetch } from "./throttled-fetch.ts";
