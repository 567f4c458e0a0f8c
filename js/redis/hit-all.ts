import { hitAllElsewhere } from "../limiter/hit-all-elsewhere.ts";
import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import type { RedisLimiter } from "./limiter.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: charges each cost if all keys may act now, and
 * none otherwise. It hits all keys at once, on whichever nodes they are, and each charges its cost as its hit is decided. If a key
 * denies, a second call undoes the other hits.
 * Hits of one limiter on one key are one decision, about the sum of their costs.
 *
 * A process that crashes in between, or cannot reach a key for ten seconds, leaves that key charged at most its cost.
 *
 * @example
 * ```ts
 * import { Redis } from "ioredis";
 * import { hitAll, RedisLimiter } from "tollgate/redis";
 *
 * const client = new Redis();
 * const users = new RedisLimiter({ algorithm: "sliding_window", limit: 100, scale: "1m" }, { client });
 * const teams = new RedisLimiter({ algorithm: "token_bucket", capacity: 500, refillRate: 50 }, { client });
 * const { allowed } = await hitAll([
 *   { limiter: users, key: "user:42" },
 *   { limiter: teams, key: "team:7", cost: 2 },
 * ]);
 * ```
 */
export const hitAll = (hits: readonly HitOf<RedisLimiter, string>[]): Promise<AllHits> =>
  hitAllElsewhere<RedisLimiter>(hits, byOwnPolicies);
