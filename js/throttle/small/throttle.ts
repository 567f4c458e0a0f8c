import type { Policies } from "../../types.ts";
import { BasicThrottle, type ThrottleOptions } from "../basic-throttle.ts";
import { smallCore } from "./core.ts";

/**
 * Waits instead of denying: each `acquire` is let through when the policy allows it, in order of arrival. It is the
 * `Throttle` of `"tollgate"` without `run` and concurrency limits, in half the bytes.
 *
 * @example
 * ```ts
 * import { Throttle } from "tollgate/throttle";
 *
 * const throttle = new Throttle({ algorithm: "token_bucket", capacity: 5, refillRate: 2 });
 * await throttle.acquire({ key: "search", maxWait: 10_000 });
 * const save = throttle.wrap(async (text: string) => text.length);
 * console.log(await save("hello")); // => 5
 * ```
 */
export class Throttle extends BasicThrottle {
  constructor(policies: Policies, options: ThrottleOptions = {}) {
    super(policies, options, smallCore);
  }
}
