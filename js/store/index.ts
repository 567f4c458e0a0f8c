export { type ErrorCode, TollgateError } from "../errors/error.ts";
export type {
  DecidedBy,
  DecidedOperation,
  DecisionMessage,
  LimiterKind,
  OnDecision,
} from "../events/messages.ts";
export type { AsyncLimiter } from "../limiter/async-limiter.ts";
export type { FallbackLimiter, FallbackReservation } from "../limiter/fallback.ts";
export type { AllHits, HitOf } from "../limiter/several-keys.ts";
export { AsyncReservation } from "../reservation/async-reservation.ts";
export type {
  Costs,
  Decision,
  Duration,
  Exception,
  ExceptionEnd,
  ExceptionNumbers,
  Extension,
  KeyException,
  Policies,
  Policy,
  ReserveOptions,
  Settlement,
} from "../types.ts";
export { hitAll } from "./hit-all.ts";
export { StoreLimiter } from "./limiter.ts";
export type { Awaitable, Store, StoreOptions, StoreStats } from "./types.ts";
