import { settleByPolicyText } from "./core/generated.ts";
import { isInteger } from "./durations.ts";
import { fill, TollgateError, wrongAmount } from "./error.ts";
import type { ReadPolicies } from "./policies.ts";
import type { Costs } from "./types.ts";

/** Stands for as much as was reserved. */
export const asReserved = -1;

/** Returns costs by the positions of the policies, each read once. A policy that is left out costs `otherwise`. */
export function costsByPosition(costs: unknown, policies: ReadPolicies, otherwise: number): number[] {
  if (!isRecord(costs)) throw wrongAmount("cost", costs);
  const numbers: number[] = policies.names.map(() => otherwise);
  for (const [name, cost] of Object.entries(costs as Readonly<Record<string, unknown>>)) {
    const position = policies.position(name);
    if (cost === undefined) continue;
    if (!isInteger(cost)) throw wrongAmount("cost", cost);
    numbers[position] = cost;
  }
  return numbers;
}

/** Returns true for a plain object. A map or a boxed number has no names, and would cost 1. */
export function isRecord(costs: unknown): costs is object {
  if (typeof costs !== "object" || costs === null) return false;
  const prototype = Object.getPrototypeOf(costs);
  // That of another realm's objects is another one, but has none itself either.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Returns what was used by the positions of the policies; as much as was reserved where that is left out. */
export function usedByPosition(
  used: Costs | undefined,
  policies: ReadPolicies,
  isByPolicy: boolean,
): number[] {
  if (typeof used !== "number") return costsByPosition(used ?? {}, policies, asReserved);
  if (!isInteger(used)) throw wrongAmount("cost", used);
  if (isByPolicy && used !== 0)
    throw new TollgateError("invalid_cost", fill(settleByPolicyText, { found: used }));
  return policies.names.map(() => used);
}
