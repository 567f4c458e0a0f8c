import { fieldError, fill, invalidField, inWords, type TollgateError, worded } from "../errors/error.ts";
import type { Policies, Policy, Shape } from "../types.ts";
import { elements } from "../wasm/elements.ts";
import {
  fillableCapacityText,
  freeAmongSeveralText,
  manyPoliciesText,
  namedTwiceText,
  noPoliciesText,
  otherAlgorithmText,
  otherCalendarText,
  otherPoliciesText,
  otherScaleText,
  policiesText,
  policyRequiredText,
  reachableLimitText,
  schema,
  status,
  unknownPolicyText,
} from "../wasm/generated.ts";
import { type ReadPolicy, readPolicy } from "./policy.ts";

/** Validated policies by their frozen copies, which limiters expose as `policies`. */
const byCopies = /* @__PURE__ */ new WeakMap<object, ReadPolicies>();

/** Validated policies. They are copies, so later changes of the caller's objects have no effect. */
export class ReadPolicies {
  /** The copied policies. */
  readonly policies: readonly Policy[];
  /** The numbers of each policy, one after the other. */
  readonly numbers: readonly number[];
  /** The `denied` of the only policy; 0 if there are several. */
  readonly denied: number;
  /** The name, algorithm and scale of each policy. */
  readonly origins: readonly Shape[];
  readonly names: readonly string[];

  constructor(policies: unknown) {
    const copies = copiesOf(policies);
    const read: ReadPolicy[] = [];
    for (const copy of copies) read.push(readPolicy(copy));
    checkTogether(read);
    this.policies = Object.freeze(copies.map(Object.freeze)) as readonly Policy[];
    this.numbers = read.flatMap(({ numbers }) => numbers);
    this.denied = read.length === 1 ? (read[0]?.denied ?? 0) : 0;
    this.origins = originsOf(read);
    this.names = this.origins.map(({ name }) => name);
    byCopies.set(this.policies, this);
  }

  /** Reads policies; those of a limiter are already validated. */
  static of(policies: unknown): ReadPolicies {
    return byCopies.get(policies as object) ?? new ReadPolicies(policies);
  }

  /** Returns the position of a policy, by its name where there are several. */
  position(name: string | undefined): number {
    if (name === undefined && this.names.length === 1) return 0;
    const position = this.names.indexOf(name as string);
    if (position >= 0) return position;
    const known = this.names.join(", ");
    const text = name === undefined ? policyRequiredText : unknownPolicyText;
    throw worded("unknown_policy", text, { found: inWords(name), known });
  }

  /** Returns the limit of the policy at a position. */
  limit(position: number): number {
    return this.numbers[schema.perPolicy * position + 1] as number;
  }

  /** Returns the position of the algorithm of the policy at a position. */
  algorithm(position: number): number {
    return this.numbers[schema.perPolicy * position] as number;
  }

  /** Returns the stored scale of the policy at a position. */
  scale(position: number): number {
    return this.numbers[schema.perPolicy * position + 3] as number;
  }

  /** Returns the error for the status of a policy that Rust rejected. */
  unfit(code: number, expected: string): TollgateError {
    const position = status.at - code;
    const field = this.#policy(position).limit == null ? "capacity" : "limit";
    return invalidField("invalid_policy", field, this.limit(position), expected);
  }

  #policy(position: number): { readonly limit?: unknown } {
    return this.policies[position] as { readonly limit?: unknown };
  }
}

/** Returns the error for a bucket that takes too long to fill. */
export const tooSlow = (policies: ReadPolicies, code: number): TollgateError =>
  policies.unfit(code, fill(fillableCapacityText, { max: Number.MAX_SAFE_INTEGER }));

/** Returns what is accepted in the place of a concurrency that a key cannot reach. */
export function reachableText(stored: boolean): string {
  const max = stored ? schema.maxStoredReservations : schema.maxReservations;
  return fill(reachableLimitText, { max });
}

/** The policies of one call: their numbers, and copies for an error message. */
export interface ReadCall {
  readonly numbers: readonly number[];
  readonly copies: unknown;
}

/** Reads the policies of one call. A single policy, the common case, takes the fewest steps. */
export function readCall(policies: Policies): ReadCall {
  if (Array.isArray(policies)) {
    const { numbers, policies: copies } = ReadPolicies.of(policies);
    return { numbers, copies };
  }
  const copies = copyOf(policies);
  return { numbers: readPolicy(copies).numbers, copies };
}

/** Copies policies; each field is read once. A value that is not an object stays as it is and is rejected later. */
export function copiesOf(policies: unknown): unknown[] {
  if (!Array.isArray(policies)) return [copyOf(policies)];
  // One more than the maximum is enough for the error.
  return elements(policies, schema.maxPolicies + 1).map(copyOf);
}

const copyOf = (policy: unknown): unknown =>
  typeof policy === "object" && policy !== null && !Array.isArray(policy) ? { ...policy } : policy;

/** Returns the error for policies of a call that Rust rejected: the first difference from the limiter's own. */
export function mismatch(own: ReadPolicies, call: ReadPolicies): TollgateError {
  const error = (text: string, found: unknown, expected: unknown, field = "") =>
    worded("policy_mismatch", text, { field, found, expected });
  const { length } = own.names;
  if (call.names.length !== length) return error(otherPoliciesText, call.names.length, length);
  for (const [at, { algorithm, scale }] of own.origins.entries()) {
    const other = call.origins[at] as Shape;
    if (other.algorithm !== algorithm) return error(otherAlgorithmText, other.algorithm, algorithm);
    // The shape of these has no scale.
    if (algorithm === "concurrency" || algorithm === "ban") continue;
    const field = "capacity" in (own.policies[at] as object) ? "per" : "scale";
    if (other.scale !== scale)
      return error(
        Math.min(scale, other.scale) < 0 ? otherCalendarText : otherScaleText,
        other.scale,
        scale,
        field,
      );
  }
  return error(otherPoliciesText, call.names.length, length);
}

function checkTogether(policies: readonly ReadPolicy[]): void {
  const { length } = policies;
  if (length < 1 || length > schema.maxPolicies) {
    const found = length === 0 ? noPoliciesText : manyPoliciesText;
    throw fieldError("invalid_policy", "policies", found, policiesText);
  }
  if (length > 1 && policies.some(({ denied }) => denied === 1))
    throw invalidField("invalid_policy", "denied", schema.deniedWords[0], freeAmongSeveralText);
}

/** Returns the origins of states. A policy's name is its own, or its algorithm's, with a number if that is taken. */
function originsOf(policies: readonly ReadPolicy[]): Shape[] {
  const given = policies.map(({ name }) => name);
  const origins: Shape[] = [];
  const isTaken = (name: string) => origins.some((origin) => origin.name === name);
  for (const { name: own, algorithm, numbers } of policies) {
    if (own !== undefined && isTaken(own))
      throw worded("invalid_policy", namedTwiceText, { field: "name", found: inWords(own) });
    let name = own ?? algorithm;
    for (let number = 2; own === undefined && (given.includes(name) || isTaken(name)); number++)
      name = `${algorithm}-${number}`;
    origins.push({ name, algorithm, scale: numbers[3] });
  }
  return origins;
}
