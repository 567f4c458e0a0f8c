/** The answer to a hit, as the object gives it. */
export interface Decision {
  allowed: boolean;
  count: number;
  limit: number;
  remaining: number;
  /** Milliseconds until the same hit would be allowed; 0 when it is, null for never. */
  retryAfter: number | null;
  /** Milliseconds until the key is as if it had never been used. */
  resetAfter: number;
  /** The policy that the numbers are of. */
  policy: string;
  /** The policies that denied. */
  violated: string[];
}
