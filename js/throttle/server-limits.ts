import { items } from "./fields.ts";
import { dateOf, milliseconds, unsigned, untilReset } from "./times.ts";

/** A limit of a server, as a response reports it. Numbers that it does not report are NaN. */
export interface ServerLimit {
  /** The name of its policy, or the names of its headers. */
  readonly name: string;
  /** How much may be used in all. */
  readonly limit: number;
  /** How much is left. */
  readonly remaining: number;
  /** In how many milliseconds all of it is left. */
  readonly resetAfter: number;
  /** Whether that time is in whole seconds. */
  readonly isRounded: boolean;
  /** How long its window is, in milliseconds. */
  readonly window: number;
  /** Whether it is a bucket that refills until then; otherwise nothing comes back before. */
  readonly refills: boolean;
  /** What it counts: requests, unless the response says otherwise. */
  readonly unit: string;
}

/** The parts of a response that are read. */
export interface LimitedResponse {
  readonly status: number;
  readonly headers: {
    /** Returns a header; `null` if there is none. */
    get(name: string): string | null;
  };
}

/** What a response says about the limits of a server. */
export interface ServerLimits {
  /** How long the client should wait, in milliseconds; 0 if the server asks for no wait. */
  readonly wait: number;
  /** Whether a limit denied the request, so that it was not carried out. */
  readonly isDenied: boolean;
  readonly limits: readonly ServerLimit[];
}

/** The names of headers in which `*` stands for Limit, Remaining and Reset. Behind them is what they count. */
const families: readonly (readonly [names: string, unit?: string])[] = [
  ["RateLimit-*"],
  ["X-RateLimit-*"],
  ["X-Rate-Limit-*"],
  ["X-RateLimit-*-Requests", "requests"],
  ["X-RateLimit-*-Tokens", "tokens"],
  ["Anthropic-RateLimit-Requests-*", "requests"],
  ["Anthropic-RateLimit-Tokens-*", "tokens"],
  ["Anthropic-RateLimit-Input-Tokens-*", "tokens"],
  ["Anthropic-RateLimit-Output-Tokens-*", "tokens"],
];

/** The statuses whose `Retry-After` is a wait: GitHub denies with 403, and Anthropic's 529 says that it is overloaded. */
const denials = [429, 529, 403, 503];

/**
 * Returns what a response says about the limits of its server. The time is linear in the length of its headers.
 * @internal
 */
export function serverLimits({ status, headers }: LimitedResponse, clientTime: number): ServerLimits {
  const get = (name: string) => `${headers.get(name) ?? ""}`;
  const kind = denials.indexOf(status);
  // A cached response belongs to an earlier request.
  if (Number(get("Age")) > 0) return { wait: 0, isDenied: kind === 0, limits: [] };
  // The server's dates are by its own clock.
  const now = dateOf(get("Date"), clientTime) || clientTime;
  const limits = reported(get, now);
  const asked = kind < 0 ? Number.NaN : retryAfter(get, now);
  let wait = asked >= 0 ? asked : 0;
  let hasReason = asked >= 0;
  for (const { remaining, resetAfter, refills } of limits) {
    if (remaining !== 0) continue;
    hasReason = true;
    // A bucket that refills allows more long before it is full, so only a denial waits for that.
    if (!(asked >= 0) && (kind >= 0 || !refills) && resetAfter > wait) wait = resetAfter;
  }
  return { wait, isDenied: kind === 0 || kind === 1 || (kind === 2 && hasReason), limits };
}

/** Returns a header; an empty text if there is none. */
type Get = (name: string) => string;

/**
 * Parses `retry-after-ms`, in milliseconds, and `Retry-After`, in seconds or as a date; NaN if there is none.
 * @internal
 */
export function retryAfter(get: Get, now: number): number {
  const exact = unsigned(get("Retry-After-Ms"));
  if (exact >= 0) return exact;
  const text = get("Retry-After");
  const seconds = unsigned(text);
  return seconds >= 0 ? milliseconds(seconds) : Math.max(dateOf(text, now) - now, 0);
}

/**
 * Returns the limits of `RateLimit`, the field of the standard.
 * @internal
 */
export function standardLimits(get: Get): ServerLimit[] {
  const policies = new Map(items(get("RateLimit-Policy")).map((policy) => [policy.name, policy]));
  return items(get("RateLimit")).map(({ name, numbers, unit }) => {
    const policy = policies.get(name);
    const window = (policy?.numbers.get("w") ?? Number.NaN) * 1_000;
    const seconds = numbers.get("t");
    return {
      name,
      limit: policy?.numbers.get("q") ?? Number.NaN,
      remaining: numbers.get("r") ?? Number.NaN,
      resetAfter: seconds === undefined ? window : seconds * 1_000,
      isRounded: true,
      window,
      refills: false,
      unit: policy?.unit ?? unit ?? "requests",
    };
  });
}

function reported(get: Get, now: number): ServerLimit[] {
  const limits = standardLimits(get);
  for (const [names, unit] of families) {
    const number = (part: string) => get(names.replace("*", part));
    const remaining = number("Remaining");
    if (!remaining) continue;
    const reset = number("Reset-After") || number("Reset");
    limits.push({
      name: names,
      // A list of policies may follow the limit.
      limit: unsigned(number("Limit").split(",", 1)[0] as string),
      remaining: unsigned(remaining),
      resetAfter: untilReset(reset, now),
      isRounded: !/[.a-z]/.test(reset),
      window: Number.NaN,
      refills: unit !== undefined,
      unit: unit ?? "requests",
    });
  }
  return limits;
}
