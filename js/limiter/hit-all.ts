import { reserveOnly } from "../errors/error.ts";
import { hasBan } from "../policy/bans.ts";
import { ReadPolicies } from "../policy/policies.ts";
import type { Decision, Key } from "../types.ts";
import type { RateLimiter } from "./limiter.ts";
import { type AllHits, byOwnPolicies, checkLimiter, type HitOf, summed } from "./several-keys.ts";

/**
 * Decides over several keys, of one limiter or several, all or nothing: charges each cost if all keys may act now, and
 * none otherwise. It is atomic. Hits of one limiter on one key are one decision, about the sum of their costs.
 *
 * @example
 * ```ts
 * import { hitAll, RateLimiter } from "tollgate";
 *
 * const users = new RateLimiter({ algorithm: "fix_window", limit: 60, scale: "1m" });
 * const teams = new RateLimiter({ algorithm: "fix_window", limit: 1000, scale: "1m" });
 * const { allowed } = hitAll([
 *   { limiter: users, key: "user:42" },
 *   { limiter: teams, key: "team:7", cost: 2 },
 * ]);
 * console.log(allowed); // => true
 * console.log(teams.get("team:7")); // => 2
 * ```
 */
export function hitAll(hits: readonly HitOf<RateLimiter>[]): AllHits {
  const [sums, spread] = summed<RateLimiter, Key>(hits, checkHits, byOwnPolicies);
  const open: { cancel(): unknown; settle(): unknown }[] = [];
  const decisions: Decision[] = [];
  let allowed = true;
  try {
    for (const { limiter, key, cost, policies } of sums) {
      // First, since a denied reservation may count.
      let decision = limiter.peekFree(key, cost, policies);
      // Under several policies it charges nothing, and counts toward a ban.
      if (!decision.allowed && hasBan(ReadPolicies.of(limiter.policies)))
        decision = limiter.hit(key, cost, policies);
      allowed &&= decision.allowed;
      if (!allowed) {
        decisions.push(decision);
        continue;
      }
      const reservation = limiter.reserve(key, cost, { policies });
      allowed = reservation.allowed;
      // A reservation's decision resets later than a hit, since the reservation may stay open until its end.
      decisions.push(allowed ? decision : reservation.decision);
      if (allowed) open.push(reservation);
    }
  } catch (error) {
    allowed = false;
    throw error;
  } finally {
    for (const reservation of open) allowed ? reservation.settle() : reservation.cancel();
  }
  return { allowed, decisions: spread(decisions) };
}

/** Checks that a limiter is in memory and has no concurrency policy: a reservation that is settled at once would limit nothing. */
function checkHits(limiter: RateLimiter): void {
  checkLimiter(limiter, true, "a RateLimiter; see docs/several-keys.md");
  for (const { algorithm, name } of limiter.policies) {
    if (algorithm === "concurrency") throw reserveOnly(name ?? algorithm, "hitAll");
  }
}
