// What `tollgate` and `tollgate/js` both export. Headers and `Ledger` are left out here, since only servers need them.

export { type ErrorCode, TollgateError } from "./errors/error.ts";
export type {
  DecidedBy,
  DecidedOperation,
  DecisionMessage,
  LimiterKind,
  OnDecision,
} from "./events/messages.ts";
export { type IpKeyOptions, ipKey } from "./http/address.ts";
export { hitAll } from "./limiter/hit-all.ts";
export { RateLimiter } from "./limiter/limiter.ts";
export type { AllHits, HitOf } from "./limiter/several-keys.ts";
export { type Operation, type Step, step } from "./limiter/step.ts";
export { Reservation } from "./reservation/reservation.ts";
export type { Timer } from "./throttle/alarm.ts";
export type {
  AcquireOptions,
  BasicThrottle,
  FairCall,
  ThrottleChange,
  ThrottleOptions,
} from "./throttle/basic-throttle.ts";
export type { BatchOptions, BatchResult } from "./throttle/batch.ts";
export type { FetchOptions } from "./throttle/fetch.ts";
export type { FleetLimiter, FleetOptions } from "./throttle/fleet.ts";
export type { Place, QueueState } from "./throttle/places.ts";
export type { Fetch, FetchRequest, FetchResponse, Signal } from "./throttle/platform.ts";
export type { Running, RunOptions } from "./throttle/run.ts";
export { Throttle } from "./throttle/throttle.ts";
export { throttledFetch } from "./throttle/throttled-fetch.ts";
export type { WrapOptions, Wrapped } from "./throttle/wrap.ts";
export type {
  Algorithm,
  BanPolicy,
  CalendarPolicy,
  ConcurrencyPolicy,
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  ExceptionNumbers,
  Expired,
  Extension,
  Key,
  KeyException,
  LeakyBucketPolicy,
  Options,
  Policies,
  Policy,
  PolicyBase,
  ReserveOptions,
  Settlement,
  Shape,
  Snapshot,
  State,
  StoredKey,
  StoredRow,
  TokenBucketPolicy,
  UtcOffset,
  WindowPolicy,
} from "./types.ts";
