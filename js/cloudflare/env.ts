import type { RateLimiterObject } from "./object/object.ts";

/** The bindings of the Worker. */
export interface TollgateEnv {
  /** The Durable Objects of the keys. */
  readonly LIMITERS: DurableObjectNamespace<RateLimiterObject>;
  /** The configuration: the table `[vars.TOLLGATE]`, or the same as JSON. */
  readonly TOLLGATE?: unknown;
  /** The token of the HTTP API. Without it the API is closed. */
  readonly TOLLGATE_TOKEN?: string;
  /** The secret that keys in logs are hashed with; by default the token, or else one of each isolate's own. */
  readonly TOLLGATE_LOG_SECRET?: string;
  /** Gets a data point for each denial, error and expiry. */
  readonly TOLLGATE_METRICS?: AnalyticsEngineDataset;
  /** The page, which is served when there is no upstream. */
  readonly ASSETS?: Fetcher;
}
