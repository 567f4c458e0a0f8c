import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import { reserveAll } from "../reservation/reserve-all.ts";
import type { StoreLimiter } from "./limiter.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: charges each cost if all keys may act now, and
 * none otherwise. It reserves every cost at once. If a key denies, the other reservations are cancelled. If all allow,
 * each reservation is settled with the next change of its key, or charged after five seconds; it counts as used meanwhile.
 * Hits of one limiter on one key are one decision, about the sum of their costs.
 *
 * A process that crashes in between charges each key at most its cost.
 *
 * @example
 * ```ts
 * import { hitAll, StoreLimiter } from "tollgate/store";
 * import { memoryStore } from "tollgate/testing";
 *
 * const store = memoryStore();
 * const users = new StoreLimiter({ algorithm: "sliding_window", limit: 100, scale: "1m" }, { store });
 * const teams = new StoreLimiter({ algorithm: "token_bucket", capacity: 500, refillRate: 50 }, { store });
 * const { allowed } = await hitAll([
 *   { limiter: users, key: "user:42" },
 *   { limiter: teams, key: "team:7", cost: 2 },
 * ]);
 * console.log(allowed); // => true
 * ```
 */
export const hitAll = (hits: readonly HitOf<StoreLimiter, string>[]): Promise<AllHits> =>
  reserveAll<StoreLimiter>(hits, byOwnPolicies);
