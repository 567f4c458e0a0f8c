import type { Policies } from "../../types.ts";
import type { ThrottleOptions } from "../basic-throttle.ts";
import { FetchThrottle } from "../fetch-throttle.ts";
import type { Fetch } from "../platform.ts";
import { smallCore } from "./core.ts";

/**
 * Returns a `fetch` that waits its turn instead of collecting 429s.
 *
 * @example
 * ```ts
 * import { throttledFetch } from "tollgate/throttle";
 *
 * const politeFetch = throttledFetch({ algorithm: "token_bucket", capacity: 5, refillRate: 2 });
 * const response = await politeFetch("https://api.example.com/items");
 * console.log(response.status); // => 200
 * ```
 */
export function throttledFetch(policies: Policies, options: ThrottleOptions = {}): Fetch {
  const throttle = new FetchThrottle(policies, options, smallCore);
  return (...args: Parameters<Fetch>) => throttle.fetch(...args);
}
