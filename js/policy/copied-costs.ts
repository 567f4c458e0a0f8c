import { wrongAmount } from "../errors/error.ts";
import type { Costs } from "../types.ts";
import { isRecord } from "./costs.ts";

/** Copies costs that leave the process. A cost that is not finite would become null in JSON; Rust checks the rest. */
export function copiedCosts(costs: unknown): Costs {
  const copy = copiedUse(costs);
  if (typeof copy === "object" && Object.keys(copy).length === 0) throw wrongAmount("cost", costs);
  return copy;
}

/** Copies used amounts, of which all may be left out. */
export function copiedUse(used: unknown): Costs {
  if (!isRecord(used)) return finite(used);
  const given = Object.entries(used).filter(([, cost]) => cost !== undefined);
  // Not by assignment: a policy may be named "__proto__".
  return Object.fromEntries(given.map(([name, cost]) => [name, finite(cost)]));
}

function finite(cost: unknown): number {
  if (!Number.isFinite(cost)) throw wrongAmount("cost", cost);
  return cost as number;
}
