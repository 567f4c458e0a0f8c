import type { AllHits, HitOf } from "../all-hits.ts";
import { reserveAll } from "../reserve-all.ts";
import type { RedisLimiter } from "./limiter.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: takes each cost if all keys may act now, and none
 * otherwise. All are asked at once, on whatever nodes they are. A denial sends a second message, which gives back what the
 * others set aside; what an allowed one took is charged with the next operation on its key, or after five seconds, and
 * counts until then.
 *
 * A process that crashes in between costs each key at most what it asked for.
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
export const hitAll = (hits: readonly HitOf<RedisLimiter, string>[]): Promise<AllHits> => reserveAll(hits);
