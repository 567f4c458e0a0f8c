/** Each lets one call through every so many milliseconds, in order, and answers how to make such a call. */
export const subjects = {
  tollgate: async (every) => {
    const { Throttle } = await import("tollgate");
    const throttle = new Throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 1, per: every });
    return (work) => throttle.wrap(work);
  },
  /** Each call after those before it, by a priority of its own. */
  "tollgate, a priority for each": async (every) => {
    const { Throttle } = await import("tollgate");
    const throttle = new Throttle({ algorithm: "token_bucket", capacity: 1, refillRate: 1, per: every });
    return (work) => (number) => throttle.acquire({ priority: -number }).then(() => work(number));
  },
  "p-throttle": async (every) => {
    const { default: pThrottle } = await import("p-throttle");
    return pThrottle({ limit: 1, interval: every });
  },
  "p-throttle, strict": async (every) => {
    const { default: pThrottle } = await import("p-throttle");
    return pThrottle({ limit: 1, interval: every, strict: true });
  },
  bottleneck: async (every) => {
    const { default: Bottleneck } = await import("bottleneck");
    const limiter = new Bottleneck({ minTime: every });
    return (work) => limiter.wrap(work);
  },
};

export const packages = ["p-throttle", "bottleneck"];
