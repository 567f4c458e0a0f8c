export type { AllHits, HitOf } from "../all-hits.ts";
export { AsyncReservation } from "../async-reservation.ts";
export { type ErrorCode, TollgateError } from "../errors/error.ts";
export type { RuleParts } from "../rule-key.ts";
export type { Costs, Decision, Duration, Extension, Settlement } from "../types.ts";
export { hitAll } from "./hit-all.ts";
export { type LeaseOptions, RemoteLimiter, type RemoteOptions, type RemoteReserveOptions } from "./remote.ts";
export { RemoteKey } from "./remote-key.ts";
