import { hitAllElsewhere } from "../limiter/hit-all-elsewhere.ts";
import type { AllHits, HitOf } from "../limiter/several-keys.ts";
import { type RemoteLimiter, unacceptedPolicies } from "./remote.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: charges each cost if all keys may act now, and
 * none otherwise. It hits all keys at once, and each charges its cost as its hit is decided. If a key denies, a second request undoes
 * the other hits.
 * Hits of one limiter on one key are one decision, about the sum of their costs.
 *
 * A client that crashes in between, or cannot reach a key for ten seconds, leaves that key charged at most its cost.
 *
 * @example
 * ```ts
 * import { hitAll, RemoteLimiter } from "tollgate/client";
 *
 * const [url, token] = ["https://limits.example.com/_tollgate", process.env.TOLLGATE_TOKEN ?? ""];
 * const users = new RemoteLimiter({ url, token, policy: "api" });
 * const teams = new RemoteLimiter({ url, token, policy: "daily" });
 * const { allowed } = await hitAll([
 *   { limiter: users, key: "user:42" },
 *   { limiter: teams, key: "team:7", cost: 2 },
 * ]);
 * ```
 */
export const hitAll = (hits: readonly HitOf<RemoteLimiter, string>[]): Promise<AllHits> =>
  hitAllElsewhere<RemoteLimiter>(hits, {
    namesOf: ({ policyNames }) => policyNames,
    callOf: (policies) => {
      throw unacceptedPolicies(policies);
    },
  });
