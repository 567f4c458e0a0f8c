import { HitStore } from "./hit-store.ts";

/**
 * A store for express-rate-limit, over any limiter.
 *
 * @example
 * ```ts
 * import { rateLimit } from "express-rate-limit";
 * import { RateLimiter } from "tollgate";
 * import { ExpressStore } from "tollgate/stores";
 *
 * const limiter = new RateLimiter({ algorithm: "sliding_window", limit: 100, scale: "1m" });
 * const limited = rateLimit({ windowMs: 60_000, limit: 100, store: new ExpressStore(limiter) });
 * ```
 */
export class ExpressStore extends HitStore {}
