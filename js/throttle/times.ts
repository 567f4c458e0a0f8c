/** Dates in HTTP (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, or `Sunday, 06-Nov-94 08:49:37 GMT`. */
const httpDate = /^[A-Z][a-z]{2,8}, (\d\d)[ -]([A-Z][a-z]{2})[ -](\d\d)(\d\d)? ([\d:]{8}) GMT$/;
/** The form of C: `Sun Nov  6 08:49:37 1994`. It is in UTC, too. */
const dateOfC = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) ([\d:]{8}) (\d{4})$/;
/** Dates of RFC 3339: `1994-11-06T08:49:37Z`. */
const isoDate = /^\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d)$/;

/** A year of two digits is at most 50 years ahead. */
const halfCentury = 50 * 365.25 * 86_400_000;

/** Parses a date as servers write it into milliseconds since the epoch; NaN if invalid. */
export function dateOf(text: string, now: number): number {
  if (isoDate.test(text)) return Date.parse(text);
  const [, day, month, century, rest, time] = httpDate.exec(text) ?? [];
  const date = (year: string) => Date.parse(`${day} ${month} ${year} ${time} GMT`);
  // A date of C has no year where the others have one.
  if (!day) return Date.parse(dateOfC.test(text) ? text.replace(dateOfC, "$2 $1 $4 $3 GMT") : "");
  if (rest) return date(`${century}${rest}`);
  const next = date(`20${century}`);
  return next > now + halfCentury ? date(`19${century}`) : next;
}

/** The units of durations, in milliseconds. */
const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Numbers of seconds from here on are since the epoch: it is a duration of 31 years. */
const epochSeconds = 1e9;
const epochMilliseconds = 1e12;

/** Parses a number without a sign; NaN if invalid. */
export const unsigned = (text: string): number => (/^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN);

/** Converts seconds, which may have a fraction, into milliseconds. */
export const milliseconds = (seconds: number): number => Math.round(seconds * 1_000);

/**
 * Parses the time at which a limit resets into milliseconds from now: seconds from now or since the epoch, milliseconds
 * since the epoch, a duration such as `6m0s`, or a date; NaN if invalid.
 */
export function untilReset(text: string, now: number): number {
  const count = unsigned(text);
  if (count < epochSeconds) return milliseconds(count);
  if (count >= 0) return (count < epochMilliseconds ? milliseconds(count) : count) - now;
  let [sum, end] = [0, 0];
  // Sticky: it stops at the first character that is no part of a duration.
  for (const [part, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhd])/gy)) {
    sum += Number(amount) * (units[unit as string] as number);
    end += part.length;
  }
  return end > 0 && end === text.length ? Math.round(sum) : dateOf(text, now) - now;
}
