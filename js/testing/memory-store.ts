import type { Store } from "../store/index.ts";

/**
 * Returns a store in memory: for tests of your own code, and as the shortest example of a store.
 *
 * @example
 * ```ts
 * import { StoreLimiter } from "tollgate/store";
 * import { memoryStore } from "tollgate/testing";
 *
 * const policy = { algorithm: "fix_window", limit: 1, scale: "1m" } as const;
 * const limiter = new StoreLimiter(policy, { store: memoryStore() });
 * const first = await limiter.hit("user:42");
 * const second = await limiter.hit("user:42");
 * console.log([first.allowed, second.allowed]); // => [true, false]
 * ```
 */
export function memoryStore(): Store {
  const texts = new Map<string, string>();
  return {
    get: (key) => texts.get(key),
    swap(key, before, after) {
      if ((texts.get(key) ?? null) !== before) return false;
      if (after === null) texts.delete(key);
      else texts.set(key, after);
      return true;
    },
  };
}
