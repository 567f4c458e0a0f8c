import type { PolicyCandidate } from "./candidate.ts";

/** A key that only one of two policies denied. */
export interface OnlyDenied {
  readonly key: string;
  readonly hits: number;
  readonly denied: number;
}

/** The keys that one policy denied and the other never did. */
export interface OnlyDeniedKeys {
  /** The policy that denied them. */
  readonly by: string;
  readonly keys: number;
  /** How many of their hits it denied. */
  readonly denied: number;
  /** Those that were denied most. */
  readonly worst: readonly OnlyDenied[];
}

/** Whom one of two policies hurts and the other does not. */
export interface Difference {
  readonly first: OnlyDeniedKeys;
  readonly second: OnlyDeniedKeys;
  /** The keys that both denied at some time. */
  readonly both: number;
}

/** Compares two policies by the keys that they denied; `most` is how many keys each list has. */
export function differenceOf(first: PolicyCandidate, second: PolicyCandidate, most: number): Difference {
  const keys = first.keys.size;
  let both = 0;
  const only = (one: PolicyCandidate, other: PolicyCandidate): OnlyDeniedKeys => {
    const found: number[] = [];
    let denied = 0;
    for (let key = 0; key < keys; key += 1) {
      if (one.tally.deniedOf(key) === 0 || other.tally.deniedOf(key) > 0) continue;
      found.push(key);
      denied += one.tally.deniedOf(key);
    }
    found.sort((a, b) => one.tally.deniedOf(b) - one.tally.deniedOf(a));
    const worst = found.slice(0, most).map((key) => ({
      key: one.keys.text(key),
      hits: one.tally.hitsOf(key),
      denied: one.tally.deniedOf(key),
    }));
    return { by: one.name, keys: found.length, denied, worst };
  };
  for (let key = 0; key < keys; key += 1)
    if (first.tally.deniedOf(key) > 0 && second.tally.deniedOf(key) > 0) both += 1;
  return { first: only(first, second), second: only(second, first), both };
}
