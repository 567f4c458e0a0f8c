import type { RateLimiterObject } from "./object.ts";

/** What the Worker finds in its environment. */
export interface TollgateEnv {
  /** The objects that hold the keys. */
  readonly LIMITERS: DurableObjectNamespace<RateLimiterObject>;
  /** The configuration: the table `[vars.TOLLGATE]`, or the same as JSON. */
  readonly TOLLGATE?: unknown;
  /** The secret that callers of the HTTP API show. Without it the API is closed. */
  readonly TOLLGATE_TOKEN?: string;
  /** The secret that keys in logs are hashed with; by default the token, or else one of each isolate's own. */
  readonly TOLLGATE_LOG_SECRET?: string;
  /** Gets a data point for each denial, error and expiry. */
  readonly TOLLGATE_METRICS?: AnalyticsEngineDataset;
  /** The page, which is served when there is no upstream. */
  readonly ASSETS?: Fetcher;
}
