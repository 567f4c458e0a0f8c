import { RateLimiter } from "tollgate";

export const start = 1_767_225_600_000;

/** A limiter under a clock that stands still. */
export const limiterOf = (policy) => new RateLimiter(policy, { clock: () => start });

export const policyOf = (limit, name = "api") => ({
  name,
  algorithm: "fix_window_per_key",
  limit,
  scale: "1m",
});

/** A promise that a test resolves. */
export function promised() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
