import type { AllHits, HitOf } from "../limiter/several-keys.ts";
import { reserveAll } from "../reservation/reserve-all.ts";
import { type RemoteLimiter, unacceptedPolicies } from "./remote.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: charges each cost if all keys may act now, and
 * none otherwise. It reserves every cost at once. If a key denies, a second request cancels the other reservations. If all
 * allow, each reservation is settled with the next `hitAll` or `reserve` on its key, or charged after five seconds; it
 * counts as used meanwhile. Hits of one limiter on one key are one decision, about the sum of their costs.
 *
 * A client that crashes in between charges each key at most its cost.
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
  reserveAll<RemoteLimiter>(hits, {
    namesOf: ({ policyNames }) => policyNames,
    callOf: (policies) => {
      throw unacceptedPolicies(policies);
    },
  });
