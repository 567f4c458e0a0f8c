import type { Policy } from "../../js/types.ts";

/** Decides a hit of the key under a list of policies. */
type Hit = (names: readonly string[]) => Promise<boolean>;

/** A key as a surface reaches it. */
export interface Surface {
  hit: Hit;
  counted(name: string): Promise<number>;
}

interface Limiter {
  hit(key: string): Promise<{ readonly allowed: boolean }>;
  get(key: string): Promise<number>;
}

export const counts: readonly number[];
export function policiesOf(count: number, times?: number): Record<string, Policy>;
export function mixedLists(count: number): string[][];
export function eachAlone(count: number, hit: Hit, times?: number): Promise<void>;
export function eachInLists(count: number, hit: Hit): Promise<void>;
export function oneTooMany(surface: Surface): Promise<void>;
export function usedBy(policy: Policy, count: number): number;
export function limitersUnder(
  policies: Record<string, Policy>,
  make: (own: readonly Policy[]) => Limiter,
  key?: string,
): Surface;
