import { useMemo, useSyncExternalStore } from "react";
import { retryAfter, standardLimits } from "../throttle/server-limits.ts";
import { dateOf } from "../throttle/times.ts";
import type { Decision } from "../types.ts";
import { second, useCountdown } from "./use-countdown.ts";

/** A source for the state of a limit: a decision, or the headers of a response. */
export type RateLimitSource =
  | Pick<Decision, "allowed" | "remaining" | "retryAfter">
  | RateLimitHeaders
  | Readonly<Record<string, string>>;

/** The headers of a response, as `fetch` has them. */
export interface RateLimitHeaders {
  /** Returns a header; `null` if there is none. */
  get(name: string): string | null;
}

/** The standing of a client under a limit. */
export interface RateLimitState {
  /** Whether a request may be made now. */
  readonly allowed: boolean;
  /** How many are left; undefined if that is not known, as after the wait. */
  readonly remaining: number | undefined;
  /** In how many milliseconds a request may be made; 0 if now. */
  readonly retryIn: number;
}

/**
 * Returns the standing of a client under a limit, by a decision or by the headers of a response (`RateLimit` and
 * `Retry-After`), and counts down until a request may be made again. It starts anew with another object.
 *
 * @example
 * ```tsx
 * import { useRateLimit } from "tollgate/react";
 *
 * export function Send({ response }: { response: Response | undefined }) {
 *   const { allowed, retryIn } = useRateLimit(response?.headers);
 *   return <button disabled={!allowed}>{allowed ? "Send" : `Wait ${Math.ceil(retryIn / 1000)} s`}</button>;
 * }
 * ```
 */
export function useRateLimit(source: RateLimitSource | null | undefined): RateLimitState {
  const isTakenOver = useIsTakenOver();
  const { allowed, remaining, wait } = useMemo(() => read(source, isTakenOver), [source, isTakenOver]);
  const retryIn = useCountdown(wait, source);
  if (wait === 0) return { allowed, remaining, retryIn };
  return { allowed: retryIn === 0, remaining: retryIn === 0 ? undefined : remaining, retryIn };
}

const subscribe = () => () => {};

/** Returns false on a server and in a page's first render of what a server rendered: their clocks differ. */
const useIsTakenOver = () =>
  useSyncExternalStore(
    subscribe,
    () => true,
    () => false,
  );

function read(source: RateLimitSource | null | undefined, hasClock: boolean) {
  if (!source) return { allowed: true, remaining: undefined, wait: 0 };
  if (isDecision(source)) {
    const { allowed, remaining, retryAfter: wait } = source;
    return { allowed, remaining, wait: allowed ? 0 : wait };
  }
  const headers = isHeaders(source) ? source : new Headers(source as Record<string, string>);
  const get = (name: string) => headers.get(name) ?? "";
  const limits = standardLimits(get).filter(({ remaining }) => remaining >= 0);
  const time = (name: string) => dateOf(get(name), Date.now());
  // A date is by the server's clock. Without any, it is a second away until the page has taken over.
  const now = time("Date") || (hasClock ? Date.now() : time("Retry-After") - second);
  const asked = retryAfter(get, now);
  // Of a limit that is not used up, its time is no wait.
  const used = limits.flatMap(({ remaining, resetAfter }) => (remaining === 0 ? resetAfter || 0 : 0));
  const wait = asked >= 0 ? asked : Math.max(0, ...used);
  const left = limits.map(({ remaining }) => remaining);
  return { allowed: wait === 0, remaining: left.length > 0 ? Math.min(...left) : undefined, wait };
}

const isHeaders = (source: object): source is Headers =>
  typeof (source as Partial<Headers>).get === "function";

const isDecision = (source: RateLimitSource): source is Extract<RateLimitSource, { allowed: boolean }> =>
  typeof (source as Partial<Decision>).allowed === "boolean";
