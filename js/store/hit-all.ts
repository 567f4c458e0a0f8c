import { hitAllElsewhere } from "../limiter/hit-all-elsewhere.ts";
import { type AllHits, byOwnPolicies, type HitOf } from "../limiter/several-keys.ts";
import type { StoreLimiter } from "./limiter.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: charges each cost if all keys may act now, and
 * none otherwise. It hits all keys at once, and each charges its cost as its hit is decided. If a key denies, the other hits are undone.
 * Hits of one limiter on one key are one decision, about the sum of their costs.
 *
 * A process that crashes in between, or cannot reach a key for ten seconds, leaves that key charged at most its cost.
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
  hitAllElsewhere<StoreLimiter>(hits, byOwnPolicies);
