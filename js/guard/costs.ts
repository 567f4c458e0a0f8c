import { wrongAmount } from "../errors/error.ts";
import type { Costs } from "../types.ts";

/** Checks costs. The error of a limiter elsewhere may not say that the cost is invalid. */
export function checkCosts(costs: unknown): asserts costs is Costs {
  if (costs === 1) return;
  const list: unknown[] = Object(costs) === costs ? Object.values(costs as object) : [costs];
  // Without a name of a policy, each would cost 1.
  for (const cost of list.length > 0 ? list : [costs])
    if (!Number.isSafeInteger(cost) || (cost as number) < 0) throw wrongAmount("cost", cost);
}
