/**
 * Metrics of all limiters, for Prometheus.
 * @module metrics
 */

import { Metrics, type MetricsOptions } from "./metrics.ts";

export { type ErrorCode, TollgateError } from "../errors/error.ts";
export type {
  DecidedBy,
  DecidedOperation,
  DecisionMessage,
  LimiterKind,
  OnDecision,
} from "../events/messages.ts";
export type { Decision, Key } from "../types.ts";
export { sumOfMetrics } from "./combined.ts";
export type { CountingLimiter } from "./limiters.ts";
export type { Metrics, MetricsOptions } from "./metrics.ts";
export type { NodeResponse, Reply } from "./respond.ts";

/**
 * Counts the decisions of all limiters of this process from now on, and returns them as OpenMetrics text. In Node the
 * limiters need no option; elsewhere give each `onDecision`.
 *
 * @example
 * ```ts
 * import express from "express";
 * import { rateLimit } from "tollgate/express";
 * import { metrics } from "tollgate/metrics";
 *
 * const app = express();
 * app.get("/metrics", metrics().express);
 * app.use(rateLimit({ policy: { algorithm: "sliding_window", limit: 100, scale: "1m" } }));
 * ```
 */
export const metrics = (options: MetricsOptions = {}): Metrics => new Metrics(options);
