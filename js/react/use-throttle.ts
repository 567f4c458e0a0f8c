import { useEffect, useState } from "react";
import type { ThrottleOptions } from "../throttle/basic-throttle.ts";
import { Throttle } from "../throttle/small/throttle.ts";
import type { Policies } from "../types.ts";

/**
 * Returns a throttle for the life of the component. When the component unmounts, calls that wait and requests that are
 * under way are rejected with an `AbortError`. The policies and options of the first render count.
 *
 * @example
 * ```tsx
 * import { useThrottle } from "tollgate/react";
 *
 * export function Search() {
 *   const throttle = useThrottle({ algorithm: "token_bucket", capacity: 5, refillRate: 2 });
 *   return <button onClick={() => throttle.fetch("/search?q=limits")}>Search</button>;
 * }
 * ```
 */
export function useThrottle(policies: Policies, options: ThrottleOptions = {}): Throttle {
  const [life] = useState(() => new Life(policies, options));
  useEffect(() => life.mount(), [life]);
  return life.throttle;
}

/** A throttle that can be aborted and used again: React mounts a component twice in strict mode. */
class Life {
  readonly throttle: Throttle;
  #leaving = new AbortController();

  constructor(policies: Policies, options: ThrottleOptions) {
    const { fetch: send = (request) => fetch(request) } = options;
    this.throttle = new Throttle(policies, {
      ...options,
      fetch: (request) => send(withSignal(request, this.#leaving.signal)),
    });
  }

  mount(): () => void {
    if (this.#leaving.signal.aborted) this.#leaving = new AbortController();
    return () => {
      const reason = new DOMException("The component was unmounted", "AbortError");
      this.#leaving.abort(reason);
      this.throttle.clear(reason);
    };
  }
}

/** Returns a request that another signal aborts, too. Browsers before 2024 cannot; there it ends by itself. */
const withSignal = (request: Request, signal: AbortSignal): Request =>
  AbortSignal.any ? new Request(request, { signal: AbortSignal.any([request.signal, signal]) }) : request;
