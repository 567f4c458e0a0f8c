const day = 86_400_000;

/** By path: what allows all that a bench can ask for, what allows half of a hundred, and what allows one. */
export const policies = {
  open: { algorithm: "token_bucket", capacity: 1_000_000_000, refillRate: 1, per: 3_600_000 },
  half: { algorithm: "token_bucket", capacity: 51, refillRate: 1, per: day },
  shut: { algorithm: "token_bucket", capacity: 1, refillRate: 1, per: day },
};
