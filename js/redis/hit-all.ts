import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import { reserveAll } from "../reservation/reserve-all.ts";
import type { RedisLimiter } from "./limiter.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: charges each cost if all keys may act now, and
 * none otherwise. It reserves every cost at once, on whichever nodes the keys are. If a key denies, a second call cancels
 * the other reservations. If all allow, each reservation is settled with the next operation on its key, or charged after
 * five seconds; it counts as used meanwhile. Hits of one limiter on one key are one decision, about the sum of their costs.
 *
 * A process that crashes in between charges each key at most its cost.
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
  reserveAll<RedisLimiter>(hits, byOwnPolicies);
