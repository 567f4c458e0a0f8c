import { inWords, refused, refusedAs, TollgateError } from "./error.ts";
import { most } from "./numbers.ts";
import { type ReadPolicy, readPolicy } from "./policy.ts";
import type { Origin, Policies, Policy } from "./types.ts";

const known = new WeakMap<object, ReadPolicies>();

/** Policies that were read. */
export class ReadPolicies {
  /** What Rust takes them as, one after the other. */
  readonly numbers: readonly number[];
  readonly limits: readonly number[];
  /** What states are made by, policy by policy. */
  readonly origins: readonly Origin[];
  readonly names: readonly string[];
  /** Where Rust has them, once it has been given them; `js/core/held.ts` sees to that. */
  held: number | undefined;

  constructor(policies: readonly Policy[]) {
    const read: ReadPolicy[] = [];
    // Not by map, which would pass over what a list lacks.
    for (const policy of policies) read.push(readPolicy(policy));
    checkTogether(read);
    this.numbers = read.flatMap(({ numbers }) => numbers);
    this.limits = read.map(({ numbers }) => numbers[1]);
    this.origins = originsOf(read);
    this.names = this.origins.map(({ name }) => name);
  }

  /** The position of a policy, by its name where there are several. */
  position(name: string | undefined): number {
    if (name === undefined && this.names.length === 1) return 0;
    const position = this.names.indexOf(name as string);
    if (position >= 0) return position;
    throw refused("unknown_policy", "policy", name, `one of this limiter's: ${this.names.join(", ")}`);
  }
}

/** Reads policies, once for each object they are given as: it must not be changed after. */
export function readPolicies(policies: Policies): ReadPolicies {
  const key = policies as object;
  const isObject = typeof policies === "object" && policies !== null;
  let read = isObject ? known.get(key) : undefined;
  if (read === undefined) {
    read = new ReadPolicies(Array.isArray(policies) ? policies : [policies as Policy]);
    known.set(key, read);
  }
  return read;
}

/** The error for a bucket that takes longer to fill than any clock tells, which Rust found. */
export const tooSlow = (capacity: unknown): TollgateError =>
  refused("invalid_policy", "capacity", capacity, `a capacity that the rate fills within ${most} ms`);

/** Why policies given for one call do not go with a limiter's own, which Rust found. */
export function mismatch(own: ReadPolicies, call: ReadPolicies): TollgateError {
  const error = (found: string, accepts: unknown) =>
    new TollgateError("policy_mismatch", `${found}, but this limiter accepts ${accepts}`);
  const { length } = own.names;
  if (call.names.length !== length)
    return error(`this call has ${call.names.length} policies`, `as many as its own, ${length}`);
  const has = (field: string, found: unknown) => `the policy of this call has ${field} ${found}`;
  for (const [at, { algorithm, scale }] of own.origins.entries()) {
    const other = call.origins[at] as Origin;
    if (other.algorithm !== algorithm) return error(has("algorithm", other.algorithm), `only ${algorithm}`);
    const field = algorithm.endsWith("bucket") ? "per" : "scale";
    if (other.scale !== scale) return error(has(field, `${other.scale} ms`), `only ${scale} ms`);
  }
  // What is left is a sliding window that keeps too few hits.
  const isPast = (limit: number, at: number) => limit > (own.limits[at] as number);
  const at = call.limits.findIndex(
    (limit, at) => own.origins[at]?.algorithm === "sliding_window" && isPast(limit, at),
  );
  const accepts = `at most ${own.limits[at]}, for which its sliding window keeps hits`;
  return error(has("limit", call.limits[at]), accepts);
}

function checkTogether(policies: readonly ReadPolicy[]): void {
  const { length } = policies;
  if (length < 1 || length > 32)
    throw refusedAs("invalid_policy", "policies", `a list of ${length}`, "1 to 32 policies");
  if (length > 1 && policies.some(({ numbers }) => numbers[4] === 1)) {
    const accepts = '"free", since a denial by one of several policies changes none';
    throw refused("invalid_policy", "denied", "count", accepts);
  }
}

/** What states are made by. Each policy has its own name, or its algorithm's with a number where that is taken. */
function originsOf(policies: readonly ReadPolicy[]): Origin[] {
  const given = policies.map(({ name }) => name);
  const origins: Origin[] = [];
  const isTaken = (name: string) => origins.some((origin) => origin.name === name);
  for (const { name: own, algorithm, numbers } of policies) {
    if (own !== undefined && isTaken(own)) {
      const found = `${inWords(own)} a second time`;
      throw refusedAs("invalid_policy", "name", found, "each policy a name of its own");
    }
    let name = own ?? algorithm;
    for (let number = 2; own === undefined && (given.includes(name) || isTaken(name)); number++)
      name = `${algorithm}-${number}`;
    origins.push({ name, algorithm, scale: numbers[3] });
  }
  return origins;
}
