import { wrongAmount } from "../errors/error.ts";
import type { Costs } from "../types.ts";
import { isRecord } from "./costs.ts";

/** Copies costs that leave the process. A cost that is not finite would become null in JSON; Rust checks the rest. */
export function copiedCosts(costs: unknown): Costs {
  if (!isRecord(costs)) return finite(costs);
  const given = Object.entries(costs).filter(([, cost]) => cost !== undefined);
  // Not by assignment: a policy may be named "__proto__".
  return Object.fromEntries(given.map(([name, cost]) => [name, finite(cost)]));
}

function finite(cost: unknown): number {
  if (!Number.isFinite(cost)) throw wrongAmount("cost", cost);
  return cost as number;
}
