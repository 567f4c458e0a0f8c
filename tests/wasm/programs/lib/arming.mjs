// Lets chosen exports of the wasm panic in Rust: `armed` names those that do so at their next call. Counts instances.
import { now } from "./now.mjs";

export const armed = new Set();
export let instances = 0;

/** Whether an export does its work before it panics. */
export const panics = { afterwards: false };

const { Instance } = WebAssembly;
WebAssembly.Instance = new Proxy(Instance, {
  construct(target, given) {
    const { exports } = new target(...given);
    instances += 1;
    const panicking = ([name, value]) => {
      if (typeof value !== "function") return [name, value];
      const armable = (...args) => {
        if (!armed.delete(name)) return value(...args);
        if (panics.afterwards) value(...args);
        return exports.crash();
      };
      return [name, armable];
    };
    return { exports: Object.fromEntries(Object.entries(exports).map(panicking)) };
  },
});

// The package keeps the class that it finds.
export const { RateLimiter, step } = await import("tollgate");

const clock = () => now;

/** Returns the kind of error that `work` throws. */
export const thrown = (work) => {
  try {
    work();
    return "nothing";
  } catch (error) {
    return error instanceof WebAssembly.RuntimeError ? "RuntimeError" : error.code;
  }
};

export const policies = [
  { algorithm: "fix_window", limit: 9, scale: "1h", name: "window" },
  { algorithm: "sliding_window", limit: 9, scale: "1h", name: "log" },
  { algorithm: "leaky_bucket", capacity: 9, leakRate: 1, per: "1d", name: "level" },
];
export const limiters = Array.from({ length: 5 }, () => new RateLimiter(policies, { clock }));
for (const [at, limiter] of limiters.entries()) for (let hit = 0; hit <= at; hit++) limiter.hit("key");
limiters[0].hit(7n, 3);

/** Returns the counts of a key by policy and limiter. */
export const counts = (key) => policies.map(({ name }) => limiters.map((limiter) => limiter.get(key, name)));
