import { fieldError, inWords } from "../errors/error.ts";
import { outageOf } from "../events/outage.ts";
import type { ReadPolicies } from "../policy/policies.ts";
import { after } from "./after.ts";
import { wrongOption } from "./errors.ts";
import { noReservations, type Source } from "./source.ts";
import type { AnyLimiter, GuardBinding } from "./types.ts";

/** Returns true for a rate-limit binding of Cloudflare. */
export const isBinding = (limiter: AnyLimiter): limiter is GuardBinding =>
  typeof (limiter as Partial<GuardBinding>).limit === "function" && !("hit" in limiter);

const example = 'one window, such as { algorithm: "fix_window", limit: 100, scale: "1m" }';

/**
 * Returns a source over a binding, which counts inexactly and returns only whether a request may go on. So the numbers are
 * bounds by the policy, a copy of the binding's: all of the limit may remain, or the whole period is to be waited for.
 */
export function sourceOfBinding(binding: GuardBinding, { policies, names, origins }: ReadPolicies): Source {
  const policy = policies[0];
  const scale = origins[0]?.scale ?? 0;
  if (policies.length > 1 || !policy || !("limit" in policy && "scale" in policy && scale > 0))
    throw wrongOption("policy", policies.map(({ algorithm }) => algorithm).join(" and "), example);
  const { limit } = policy;
  return {
    limiter: "other",
    policies,
    isReserveOnly: false,
    isInexact: true,
    outage: outageOf(binding, "the rate-limit binding"),
    isWatched: true,
    hit(key, costs) {
      if (costs !== 1) throw fieldError("invalid_cost", "cost", inWords(costs), "1 for a rate-limit binding");
      return after(binding.limit({ key: String(key) }), ({ success: allowed }) => {
        const wait = allowed ? 0 : scale;
        return {
          allowed,
          count: allowed ? 0 : limit,
          limit,
          remaining: allowed ? limit : 0,
          retryAfter: wait,
          resetAfter: scale,
          moreAfter: wait,
          policy: names[0] as string,
          violated: allowed ? [] : names,
        };
      });
    },
    reserve() {
      throw noReservations();
    },
  };
}
