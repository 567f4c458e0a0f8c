import { worded, wrongAmount } from "../errors/error.ts";
import type { Costs } from "../types.ts";
import { settleByPolicyText } from "../wasm/generated.ts";
import { uncountable } from "./bans.ts";
import { isInteger } from "./durations.ts";
import type { ReadPolicies } from "./policies.ts";

/** Sentinel: as much as was reserved. */
export const asReserved = -1;

/**
 * Returns costs by the positions of the policies; each is read once. A policy that is left out costs `otherwise`. All may
 * be left out only of what was used.
 */
export function costsByPosition(costs: unknown, policies: ReadPolicies, otherwise = 1): number[] {
  if (!isRecord(costs)) throw wrongAmount("cost", costs);
  let isEmpty = otherwise > 0;
  const numbers: number[] = policies.names.map(() => otherwise);
  for (const [name, cost] of Object.entries(costs as Readonly<Record<string, unknown>>)) {
    const position = policies.position(name);
    if (cost === undefined) continue;
    if (policies.origins[position]?.algorithm === "ban") throw uncountable(policies, position, "a cost");
    if (!isInteger(cost)) throw wrongAmount("cost", cost);
    numbers[position] = cost;
    isEmpty = false;
  }
  if (isEmpty) throw wrongAmount("cost", costs);
  return numbers;
}

/** Returns true for a plain object. A Map or a boxed number has no names of policies, so each would cost 1. */
export function isRecord(costs: unknown): costs is object {
  if (typeof costs !== "object" || costs === null) return false;
  const prototype = Object.getPrototypeOf(costs);
  // Plain objects of another realm have another prototype, which has none itself either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Returns the used amounts by the positions of the policies; `asReserved` where one is left out. */
export function usedByPosition(
  used: Costs | undefined,
  policies: ReadPolicies,
  isByPolicy: boolean,
): number[] {
  if (typeof used !== "number") return costsByPosition(used === undefined ? {} : used, policies, asReserved);
  if (!isInteger(used)) throw wrongAmount("cost", used);
  if (isByPolicy && used !== 0) throw worded("invalid_cost", settleByPolicyText, { found: used });
  return policies.names.map(() => used);
}
