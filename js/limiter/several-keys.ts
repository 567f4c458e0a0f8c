import { invalidField, TollgateError, wrongAmount } from "../errors/error.ts";
import type { Publisher } from "../events/publisher.ts";
import { isRecord } from "../policy/costs.ts";
import { isInteger } from "../policy/durations.ts";
import { ReadPolicies, readCall } from "../policy/policies.ts";
import type { Costs, Decision, Key, Policies, Policy } from "../types.ts";

/** One of the keys of a decision over several. */
export interface HitOf<Limiter, KeyOf = Key> {
  /** The limiter of the key. */
  readonly limiter: Limiter;
  /** The key. */
  readonly key: KeyOf;
  /** How much the hit weighs; 1 by default. */
  readonly cost?: Costs | undefined;
  /** Other numbers for this call only; not for a `RemoteLimiter`. Hits of one limiter on one key must have the same. */
  readonly policies?: Policies | undefined;
}

/** A decision over several keys. */
export interface AllHits {
  /** Whether all keys may act now. */
  readonly allowed: boolean;
  /**
   * The decision of each hit, in their order. Hits of one limiter on one key are one decision, about the sum of their
   * costs. No cost was charged unless all are allowed.
   */
  readonly decisions: readonly Decision[];
}

/**
 * Checks that a limiter is in memory, or that it is elsewhere: each kind has a `hitAll` of its own.
 * @throws TollgateError if it is not.
 */
export function checkLimiter(limiter: unknown, isInMemory: boolean, expected: string): void {
  const { reserve, clean } = (limiter ?? {}) as Readonly<Record<string, unknown>>;
  // Only a limiter in memory has `clean`.
  if (typeof reserve !== "function" || (clean !== undefined) !== isInMemory)
    throw invalidField("invalid_option", "limiter", limiter, expected);
}

/** How the hits of a kind of limiter are summed. */
export interface Summing<Limiter> {
  /** Returns the names of a limiter's policies. */
  namesOf(limiter: Limiter): readonly string[];
  /** Returns the policies of a call as a text, which is the same for the same numbers. */
  callOf(policies: Policies): string;
}

/** How hits are summed where the limiter has its policies. */
export const byOwnPolicies: Summing<{ readonly policies: readonly Policy[] }> = {
  namesOf: ({ policies }) => ReadPolicies.of(policies).names,
  callOf: (policies) => readCall(policies).numbers.join(),
};

/** Publishes the decisions of several keys, each once, by the limiters that have listeners. */
export function publishAll<KeyOf extends Key>(
  hits: readonly HitOf<{ readonly publisher?: Publisher }, KeyOf>[],
  decisions: readonly Decision[],
  allowed: boolean,
  duration: number,
): void {
  for (const [place, { limiter, key, cost = 1 }] of hits.entries()) {
    const { publisher } = limiter;
    const decision = decisions[place] as Decision;
    if (publisher?.isHeard)
      publisher.publish({ operation: "hitAll", key, cost, decision, allowed, duration });
  }
}

/** All hits of one limiter on one key, as one hit. */
interface Sum<Limiter, KeyOf> extends HitOf<Limiter, KeyOf> {
  readonly costs: (Costs | undefined)[];
  readonly call: string;
}

/**
 * Sums hits of one limiter on one key. Returns one hit for each of them, and a function that puts what belongs to these in
 * the places of all hits.
 * @throws TollgateError if hits on one key have different policies, or one of several costs is invalid.
 */
export function summed<Limiter, KeyOf>(
  hits: readonly HitOf<Limiter, KeyOf>[],
  check: (limiter: Limiter) => void,
  { namesOf, callOf }: Summing<Limiter>,
): [sums: HitOf<Limiter, KeyOf>[], spread: <Each>(results: readonly Each[]) => Each[]] {
  const sums: Sum<Limiter, KeyOf>[] = [];
  const byLimiter = new Map<Limiter, Map<KeyOf, number>>();
  const places = hits.map(({ limiter, key, cost, policies }) => {
    check(limiter);
    const call = policies === undefined ? "" : callOf(policies);
    const byKey = byLimiter.get(limiter) ?? new Map<KeyOf, number>();
    byLimiter.set(limiter, byKey);
    const place = byKey.get(key) ?? sums.length;
    byKey.set(key, place);
    const known = sums[place];
    if (known === undefined) sums.push({ limiter, key, policies, call, costs: [cost] });
    else if (known.call !== call)
      throw new TollgateError(
        "policy_mismatch",
        "the hits of one limiter on one key have different policies; use the same for all of them",
      );
    else known.costs.push(cost);
    return place;
  });
  return [
    sums.map(({ limiter, key, policies, costs }) => {
      const cost = costs.length === 1 ? costs[0] : sumOf(costs, namesOf(limiter));
      return { limiter, key, policies, cost };
    }),
    (results) => places.map((place) => results[place] as never),
  ];
}

/** Returns the sum of costs: one number, or one for each policy. A limiter rejects names that it does not know. */
function sumOf(costs: readonly unknown[], names: readonly string[]): Costs {
  const byName = costs.filter(isRecord).map((cost) => new Map<string, unknown>(Object.entries(cost)));
  const alike = added(costs.filter((cost) => !isRecord(cost)));
  if (byName.length === 0) return alike;
  const all = new Set([...names, ...byName.flatMap((cost) => [...cost.keys()])]);
  const sum = (name: string) => added([alike, ...byName.map((cost) => cost.get(name))]);
  return Object.fromEntries(Array.from(all, (name) => [name, sum(name)]));
}

/** Returns the sum of numbers, of which each that is left out is 1. */
function added(costs: readonly unknown[]): number {
  let sum = 0;
  for (const cost of costs) {
    if (cost !== undefined && !isInteger(cost)) throw wrongAmount("cost", cost);
    sum += cost ?? 1;
  }
  if (!isInteger(sum)) throw wrongAmount("cost", sum);
  return sum;
}
