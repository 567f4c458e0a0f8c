import { HitStore } from "./hit-store.ts";

/**
 * A store for hono-rate-limiter, over any limiter.
 *
 * @example
 * ```ts
 * import { rateLimiter } from "hono-rate-limiter";
 * import { RateLimiter } from "tollgate";
 * import { HonoStore } from "tollgate/stores";
 *
 * const limiter = new RateLimiter({ algorithm: "sliding_window", limit: 100, scale: "1m" });
 * const keyGenerator = () => "everyone";
 * const limited = rateLimiter({ windowMs: 60_000, limit: 100, keyGenerator, store: new HonoStore(limiter) });
 * ```
 */
export class HonoStore extends HitStore {
  // A denied request has no response yet when hono-rate-limiter asks whether it succeeded, which it then has.
  protected override readonly takesBackDenied = "skipSuccessfulRequests";
}
