import { seeded as fractions } from "../../www/traffic/random.js";

/**
 * Returns a generator of whole numbers from 0 to below a bound, the same ones in every run.
 * @param {number} seed
 * @returns {(below: number) => number}
 */
export function seeded(seed) {
  const random = fractions(seed);
  return (below) => Math.floor(random() * below);
}
