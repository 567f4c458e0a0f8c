const day = 86_400_000;

/**
 * By path: what allows all that a bench can ask for, half of a hundred, or one; a limit of 10,000 an hour; and what is
 * stored of other kinds.
 */
export const policies = {
  open: { algorithm: "token_bucket", capacity: 1_000_000_000, refillRate: 1, per: 3_600_000 },
  half: { algorithm: "token_bucket", capacity: 51, refillRate: 1, per: day },
  shut: { algorithm: "token_bucket", capacity: 1, refillRate: 1, per: day },
  hot: { algorithm: "token_bucket", capacity: 10_000, refillRate: 10_000, per: 3_600_000 },
  counter: { algorithm: "sliding_counter", limit: 1_000, scale: day },
  log: { algorithm: "sliding_window", limit: 1_000, scale: day },
};
