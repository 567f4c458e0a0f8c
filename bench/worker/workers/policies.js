/** By path: one allows all that a bench can ask for, the other next to nothing. */
export const policies = {
  open: { algorithm: "token_bucket", capacity: 1_000_000_000, refillRate: 1, per: 1_000 },
  shut: { algorithm: "token_bucket", capacity: 1, refillRate: 1, per: 86_400_000 },
};
