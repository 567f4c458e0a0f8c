import type { Policies } from "../types.ts";
import type { ThrottleOptions } from "./basic-throttle.ts";
import type { FleetOptions } from "./fleet.ts";
import type { Fetch } from "./platform.ts";
import { Throttle } from "./throttle.ts";

/**
 * Returns a `fetch` that waits its turn instead of collecting 429s.
 *
 * @example
 * ```ts
 * import { throttledFetch } from "tollgate";
 *
 * const politeFetch = throttledFetch({ algorithm: "token_bucket", capacity: 5, refillRate: 2 });
 * const response = await politeFetch("https://api.example.com/items");
 * console.log(response.status); // => 200
 * ```
 */
export function throttledFetch(policies: Policies, options?: ThrottleOptions): Fetch;
/** The same for a limiter outside the process, such as a `RedisLimiter`: all processes that use it wait for one budget. */
export function throttledFetch(options: FleetOptions): Fetch;
export function throttledFetch(policies: Policies | FleetOptions, options?: ThrottleOptions): Fetch {
  const throttle = new Throttle(policies as Policies, options);
  return (...args: Parameters<Fetch>) => throttle.fetch(...args);
}
