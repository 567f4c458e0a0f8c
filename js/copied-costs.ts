import { wrongAmount } from "./error.ts";
import type { Costs } from "./types.ts";

/** Copies costs that leave the process. What is no number must not become null in JSON; Rust checks the rest. */
export function copiedCosts(costs: unknown): Costs {
  if (typeof costs !== "object" || costs === null || Array.isArray(costs)) return finite(costs);
  const copy: Record<string, number> = {};
  for (const [name, cost] of Object.entries(costs)) if (cost !== undefined) copy[name] = finite(cost);
  return copy;
}

function finite(cost: unknown): number {
  if (!Number.isFinite(cost)) throw wrongAmount("cost", cost);
  return cost as number;
}
