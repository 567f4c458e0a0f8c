/** The largest number there can be. */
export const most = Number.MAX_SAFE_INTEGER;

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Whether it is a whole number in this range. */
export const isWhole = (value: unknown, least = 0, greatest = most): value is number =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= greatest;

/** Such numbers in words. */
export const whole = (least = 0, greatest = most): string => `a whole number from ${least} to ${greatest}`;

/** A length of time in milliseconds, if it is one. */
export function milliseconds(span: unknown): number | undefined {
  const [, digits, unit] = typeof span === "string" ? (/^(\d+)(ms|[smhd])$/.exec(span) ?? []) : [];
  const time = unit === undefined ? span : Number(digits) * (units[unit] as number);
  return isWhole(time, 1) ? time : undefined;
}

/** What a length of time may be. */
export const time = `a whole number of milliseconds from 1 to ${most}, or text such as "250ms", "1s", "5m", "1h" or "1d"`;
