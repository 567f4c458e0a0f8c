import type { Policy } from "../types.ts";

/** Policies that were read: copies of those given. */
interface Read {
  readonly policies: readonly Policy[];
}

/** The most lists of policies that are known by their content, and the most objects that are. */
const [mostLists, mostObjects] = [1_000, 64];

/** How many policies of a list are read: one more than there may be. */
const longestList = 33;

/** How many lists that are not known come before others become known in the place of all. */
const mostMissed = 16_000;

/**
 * Reads policies once: those of an object that was read before and has the same fields, and those of another object with the
 * same fields. A server that has a policy for each customer passes the same ones with many requests.
 */
export class KnownPolicies<Known extends Read> {
  readonly #read: (policies: unknown) => Known;
  // No WeakMap: it would cost every request whose policies are made anew.
  readonly #byObject = new Map<unknown, Known>();
  readonly #byContent = new Map<string, Known>();
  #missed = 0;

  constructor(read: (policies: unknown) => Known) {
    this.#read = read;
  }

  /** Returns policies as they were read. They have the fields that were checked, also if a getter changes them. */
  of(policies: unknown): Known {
    const seen = this.#byObject.get(policies);
    const given = Array.isArray(policies) ? policies : [policies];
    if (seen?.policies.length === given.length && seen.policies.every((own, at) => hasFields(given[at], own)))
      return seen;
    const copies = given.slice(0, longestList).map(copyOf);
    const content = copies.map(contentOf).join(";");
    const known = this.#byContent.get(content) ?? this.#read(copies);
    if (this.#byContent.size < mostLists) this.#byContent.set(content, known);
    else if (!this.#byContent.has(content)) {
      if (++this.#missed % mostMissed === 0) this.#byContent.clear();
      return known;
    }
    if (this.#byObject.size === mostObjects) this.#byObject.clear();
    this.#byObject.set(policies, known);
    return known;
  }
}

const copyOf = (policy: unknown): unknown =>
  typeof policy === "object" && policy !== null && !Array.isArray(policy) ? { ...policy } : policy;

/** Returns whether a policy has the fields of a copy. */
function hasFields(policy: unknown, copy: Policy): boolean {
  const names = Object.keys(copy) as (keyof Policy)[];
  return (
    Object.keys(policy ?? {}).length === names.length &&
    names.every((name) => Object.is((policy as Policy)[name], copy[name]))
  );
}

/** Returns the fields of a policy as a text. No other valid policy has it, and only valid ones are known. */
const contentOf = (policy: unknown): string =>
  Object.entries(policy ?? {})
    .map(([name, value]) =>
      typeof value === "string" ? `${name}:${value.length}:${value}` : `${name}=${number(value)}`,
    )
    .join();

const number = (value: unknown): string =>
  typeof value === "number" ? `${value}` : value == null ? "" : typeof value;
