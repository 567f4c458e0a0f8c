import type { Decision } from "../types.ts";
import { reasons, verdict } from "./generated.ts";

/**
 * A decision as nine numbers in a text, which crosses between wasm and machines fastest. The id of a reservation or a
 * lease may follow them. Operations without a decision have one number.
 */
export type Numbers = string;

/**
 * Returns the numbers of a decision without the lease that may follow them.
 * @internal
 */
export function withoutLease(reply: string): Numbers {
  let end = -1;
  for (let word = 0; word < 9; word += 1) {
    end = reply.indexOf(" ", end + 1);
    if (end < 0) return reply;
  }
  return reply.slice(0, end);
}

/**
 * Returns the number of an operation without a decision. Of a key with an exception, that follows it.
 * @internal
 */
export const numberIn = (numbers: Numbers): number => Number(numbers.split(" ", 1)[0]);

/**
 * Returns whether the decision is allowed.
 * @internal
 */
export const isAllowed = (numbers: Numbers): boolean => numbers.startsWith(`${verdict.allowed} `);

/**
 * Returns the names of the policies that denied the hit.
 * @internal
 */
export const violatedBy = (numbers: Numbers, names: readonly string[]): string[] =>
  namesIn(Number(numbers.split(" ")[7]), names);

/**
 * Returns the names at the positions of the set bits.
 * @internal
 */
export const namesIn = (bits: number, names: readonly string[]): string[] =>
  bits === 0 ? [] : names.filter((_, position) => ((bits >> position) & 1) === 1);

/**
 * Parses the numbers of a decision, with names in the place of positions. `src/lease/text.rs` writes them in this order.
 * @internal
 */
export function named(numbers: Numbers, names: readonly string[]): Decision {
  const [allowed, count, limit, remaining, retryAfter, resetAfter, policy, violated, moreAfter] = numbers
    .split(" ")
    .map(Number) as [number, number, number, number, number, number, number, number, number];
  const reason = reasonOf(allowed);
  return {
    allowed: allowed === verdict.allowed,
    count,
    limit,
    remaining,
    retryAfter: retryAfter < 0 ? Number.POSITIVE_INFINITY : retryAfter,
    resetAfter,
    moreAfter,
    policy: names[policy] ?? "",
    violated: namesIn(violated, names),
    ...(reason && { reason }),
  };
}

/**
 * Returns why a hit was denied if that was not by what counts.
 * @internal
 */
export const reasonIn = (numbers: Numbers): Denial | undefined => reasonOf(numberIn(numbers));

type Denial = (typeof reasons)[keyof typeof reasons];

const reasonOf = (number: number): Denial | undefined => reasons[number as keyof typeof reasons];

const firstNumbers: ReadonlyMap<unknown, number> = new Map(
  Object.entries(reasons).map(([number, reason]) => [reason, Number(number)]),
);

/**
 * Returns the numbers of a decision.
 * @internal
 */
export function numbersOf(decision: Decision, names: readonly string[]): Numbers {
  const { allowed, count, limit, remaining, retryAfter, resetAfter, moreAfter, policy, violated, reason } =
    decision;
  const wait = Number.isFinite(retryAfter) ? retryAfter : -1;
  const bits = violated.reduce((bits, name) => bits | (1 << names.indexOf(name)), 0);
  const position = Math.max(0, names.indexOf(policy));
  // A decision does not say how long it is certain.
  const first = allowed ? verdict.allowed : (firstNumbers.get(reason) ?? verdict.uncertain);
  return [first, count, limit, remaining, wait, resetAfter, position, bits >>> 0, moreAfter].join(" ");
}
