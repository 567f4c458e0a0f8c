/** Returns a generator of whole numbers from 0 to below a bound, the same ones in every run. */
export function seeded(seed: number): (below: number) => number;
