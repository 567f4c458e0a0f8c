import { subscribe } from "node:diagnostics_channel";
import { MemoryStore } from "express-rate-limit";
import { RateLimiter as TokenLimiter } from "limiter";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { RateLimiter } from "tollgate";
import { RateLimiter as WithoutWasm } from "tollgate/js";

const minute = 60_000;
const plenty = 1_000_000_000;

/** The same work for all: count a hit of a key, and answer a full decision. None is denied. */
const policies = {
  fix_window: { algorithm: "fix_window", limit: plenty, scale: minute },
  fix_window_per_key: { algorithm: "fix_window_per_key", limit: plenty, scale: minute },
  "sliding_window, limit 100": { algorithm: "sliding_window", limit: 100, scale: minute },
  sliding_counter: { algorithm: "sliding_counter", limit: plenty, scale: minute },
  token_bucket: { algorithm: "token_bucket", capacity: plenty, refillRate: 1_000 },
  leaky_bucket: { algorithm: "leaky_bucket", capacity: plenty, leakRate: 1_000 },
};

/** What someone would write by hand: a Map of counters, a decision for each hit, nothing swept. */
function handWritten() {
  const windows = new Map();
  return (key) => {
    const now = Date.now();
    const start = now - (now % minute);
    let window = windows.get(key);
    if (window === undefined) {
      window = { start, count: 0 };
      windows.set(key, window);
    } else if (window.start !== start) {
      window.start = start;
      window.count = 0;
    }
    window.count += 1;
    const allowed = window.count <= plenty;
    const resetAfter = start + minute - now;
    return {
      allowed,
      count: window.count,
      limit: plenty,
      remaining: allowed ? plenty - window.count : 0,
      retryAfter: allowed ? 0 : resetAfter,
      resetAfter,
      moreAfter: resetAfter,
    };
  };
}

function ownOf(policy, Limiter = RateLimiter) {
  return (maxKeys) => {
    const limiter = new Limiter(policy, { maxKeys: Math.max(maxKeys, 1) });
    return (key) => limiter.hit(key, 1);
  };
}

/** A sliding window whose logs are full before the first hit that is measured: a hundred hits a key, all of which count. */
function fullLogs() {
  const policy = { algorithm: "sliding_window", limit: 100, scale: minute, denied: "free" };
  return (keys) => {
    let now = Date.now() - 50_000;
    let clock = () => now;
    const limiter = new RateLimiter(policy, { maxKeys: keys, clock: () => clock() });
    for (let hit = 0; hit < 100; hit++, now += 400)
      for (const key of keysOf(Math.min(keys, 65_536))) limiter.hit(key);
    // From here on each hit replaces the oldest: it comes as the oldest ends.
    let hits = 0;
    clock = () => Date.now() + Math.floor((++hits / keys) * 400);
    return (key) => limiter.hit(key, 1);
  };
}

/** The same policy as a literal on every call. */
function literal() {
  return (maxKeys) => {
    const limiter = new RateLimiter(policies.fix_window, { maxKeys: Math.max(maxKeys, 1) });
    return (key) => limiter.hit(key, 1, { algorithm: "fix_window", limit: plenty, scale: "1m" });
  };
}

/** Each makes a function of a key. Those that are `async` answer promises, which their users must await. */
export const subjects = {
  "hand-written Map": { make: handWritten },
  ...Object.fromEntries(
    Object.entries(policies).map(([name, policy]) => [`tollgate ${name}`, { make: ownOf(policy) }]),
  ),
  "tollgate sliding_window, limit 100, full logs": { make: fullLogs(), most: 65_536 },
  "tollgate fix_window, a policy literal each call": { make: literal() },
  limiter: {
    make() {
      const limiters = new Map();
      return (key) => {
        let limiter = limiters.get(key);
        if (limiter === undefined) {
          limiter = new TokenLimiter({ tokensPerInterval: plenty, interval: minute });
          limiters.set(key, limiter);
        }
        const allowed = limiter.tryRemoveTokens(1);
        return { allowed, remaining: limiter.getTokensRemaining() };
      };
    },
  },
  "express-rate-limit MemoryStore": {
    async: true,
    make() {
      const store = new MemoryStore();
      store.init({ windowMs: minute });
      return (key) => store.increment(key);
    },
  },
  "rate-limiter-flexible memory": {
    async: true,
    make() {
      const limiter = new RateLimiterMemory({ points: plenty, duration: 60 });
      return (key) => limiter.consume(key, 1);
    },
  },
};

/** The same limiter of `tollgate/js`, by algorithm. */
export const withoutWasm = Object.fromEntries(
  Object.entries(policies).map(([name, policy]) => [
    `tollgate/js ${name}`,
    { make: ownOf(policy, WithoutWasm) },
  ]),
);

/** The same limiter with listeners of its decisions: none, the option, and a subscriber of the channel. */
export const withListeners = {
  "nobody listens": { make: ownOf(policies.fix_window) },
  "`onDecision`": {
    make(maxKeys) {
      const onDecision = (decision) => heard(decision);
      const limiter = new RateLimiter(policies.fix_window, { maxKeys: Math.max(maxKeys, 1), onDecision });
      return (key) => limiter.hit(key, 1);
    },
  },
  "a subscriber of `tollgate:decision`": {
    make(maxKeys) {
      subscribe("tollgate:decision", ({ decision }) => heard(decision));
      return ownOf(policies.fix_window)(maxKeys);
    },
  },
};

/** How many denials the listeners heard. */
export let denials = 0;

/** A listener that does next to nothing. */
function heard({ allowed }) {
  if (!allowed) denials++;
}

export const packages = ["express-rate-limit", "limiter", "rate-limiter-flexible"];

/** Keys as they are in the wild. */
export const keysOf = (count) =>
  Array.from({ length: count }, (_, number) => `user:${(number * 7_919 + 46_656).toString(36)}:login`);
