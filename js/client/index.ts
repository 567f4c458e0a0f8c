export { type ErrorCode, TollgateError } from "../errors/error.ts";
export type {
  DecidedBy,
  DecidedOperation,
  DecisionMessage,
  LimiterKind,
  OnDecision,
} from "../events/messages.ts";
export type { RuleParts } from "../http/rule-key.ts";
export type { AsyncLimiter } from "../limiter/async-limiter.ts";
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
  Settlement,
} from "../types.ts";
export { hitAll } from "./hit-all.ts";
export { type LeaseOptions, RemoteLimiter, type RemoteOptions, type RemoteReserveOptions } from "./remote.ts";
export { RemoteKey } from "./remote-key.ts";
