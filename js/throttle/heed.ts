import { items } from "./fields.ts";

/** How long a server asks to be left alone, in milliseconds; 0 when it does not. */
export function askedFor(response: Response, now: number): number {
  const { headers, status } = response;
  // What a cache answers tells of some earlier request.
  if (Number(headers.get("Age")) > 0) return 0;
  if (status === 429 || status === 503) {
    const wait = retryAfter(headers.get("Retry-After"), now);
    if (wait !== undefined) return wait;
  }
  return exhausted(headers);
}

/** Retry-After, in seconds or as a date; undefined when it is neither. */
function retryAfter(field: string | null, now: number): number | undefined {
  if (field === null) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(field)) return Number(field) * 1_000;
  const date = /^\s*[A-Z][a-z]{2,8}, /.test(field) ? Date.parse(field) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(date - now, 0);
}

/** Until when nothing remains: `t` of RateLimit, or the window of its policy. */
function exhausted(headers: Headers): number {
  const policies = items(headers.get("RateLimit-Policy"));
  let longest = 0;
  for (const { name, numbers } of items(headers.get("RateLimit"))) {
    if (numbers.get("r") !== 0) continue;
    const window = policies.find((policy) => policy.name === name)?.numbers.get("w");
    longest = Math.max(longest, numbers.get("t") ?? window ?? 0);
  }
  return longest * 1_000;
}
