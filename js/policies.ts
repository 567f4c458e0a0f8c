import { giveText, text } from "./core/border.ts";
import { checked } from "./core/failure.ts";
import { parts, policiesText } from "./core/text.ts";
import { dropWith, rust } from "./core/wasm.ts";
import { refused } from "./error.ts";
import type { Policies, Policy, State } from "./types.ts";

const known = new WeakMap<object, ReadPolicies>();

/** The names of the algorithms; `src/policy.rs` has the same in the same order. */
const algorithms = [
  "fix_window",
  "fix_window_per_key",
  "sliding_window",
  "sliding_counter",
  "token_bucket",
  "leaky_bucket",
];

/** Policies as Rust has read and checked them. */
export class ReadPolicies {
  /** What Rust knows them by. */
  readonly number: number;
  /** What states are made by, policy by policy. */
  readonly origins: State["policies"];
  readonly names: readonly string[];
  /** Five of each policy: its algorithm's place in the list, limit, rate, scale, and one that is not used. */
  readonly numbers: readonly number[];
  /** The slab in which `step` works on one key's states at a time. */
  #desk: number | undefined;

  constructor(policies: readonly Policy[]) {
    for (const policy of policies) {
      if (typeof policy !== "object" || policy === null || Array.isArray(policy)) {
        throw refused(
          "invalid_policy",
          "policy",
          policy,
          'an object such as { algorithm: "fix_window", limit: 100, scale: "1m" }',
        );
      }
    }
    // Read once: an object may answer otherwise the next time.
    const copies = policies.map((policy) => ({ ...policy }) as object as Readonly<Record<string, number>>);
    giveText(policiesText(copies));
    const { policies: read, drop_policies: drop } = rust();
    const number = checked(read());
    this.number = number;
    dropWith(this, () => drop(number));
    const texts = parts(text());
    const origins = policies.map((_, position) => {
      const [name, algorithm, scale] = texts.slice(3 * position) as [string, string, string];
      return { name, algorithm, scale: Number(scale) };
    });
    this.origins = origins;
    this.names = origins.map(({ name }) => name);
    this.numbers = copies.flatMap((policy, position) => {
      const { limit, capacity, refillRate, refill_rate, leakRate, leak_rate } = policy;
      const { algorithm, scale } = origins[position] as State["policies"][number];
      const rate = refillRate ?? refill_rate ?? leakRate ?? leak_rate ?? 1;
      return [algorithms.indexOf(algorithm), (limit ?? capacity) as number, rate, scale, 0];
    });
  }

  /** A slab in which one key's states at a time are worked on, for stores that keep them elsewhere. */
  get desk(): number {
    if (this.#desk === undefined) {
      const { slab, drop_slab: drop } = rust();
      giveText("");
      const number = checked(slab(this.number, 0, 1));
      dropWith(this, () => drop(number));
      this.#desk = number;
    }
    return this.#desk;
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
