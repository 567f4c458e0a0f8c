import { items } from "./fields.ts";

/** Returns how long a server asks the client to wait, in milliseconds; 0 if it does not. */
export function retryDelay(response: Response, now: number): number {
  const { headers, status } = response;
  // A cached response belongs to an earlier request.
  if (Number(headers.get("Age")) > 0) return 0;
  if (status === 429 || status === 503) {
    const wait = retryAfter(headers.get("Retry-After"), now);
    if (wait !== undefined) return wait;
  }
  return exhausted(headers);
}

/** The longest form of an HTTP date is "Wednesday, 09-Nov-94 08:49:37 GMT". */
const longestDate = 40;

/** Parses Retry-After, seconds or a date, into milliseconds; undefined if invalid. */
export function retryAfter(field: string | null, now: number): number | undefined {
  if (field === null) return undefined;
  if (/^\d+$/.test(field)) return Number(field) * 1_000;
  const isDate = field.length <= longestDate && /^[A-Z][a-z]{2,8}, /.test(field);
  const date = isDate ? Date.parse(field) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(date - now, 0);
}

/**
 * Returns how long nothing more of a limit can be used, in milliseconds: `t` of RateLimit, its effective window, or else
 * the window of its policy. Of a limit that is not used up `t` says nothing to wait for.
 */
export function exhausted(headers: Headers): number {
  const windows = new Map<string, number | undefined>();
  for (const { name, numbers } of items(headers.get("RateLimit-Policy"))) windows.set(name, numbers.get("w"));
  let longest = 0;
  for (const { name, numbers } of items(headers.get("RateLimit"))) {
    if (numbers.get("r") === 0) longest = Math.max(longest, numbers.get("t") ?? windows.get(name) ?? 0);
  }
  return longest * 1_000;
}
