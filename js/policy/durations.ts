import { fill } from "../errors/error.ts";
import {
  calendarScales,
  durationFormsText,
  durationText,
  durationUnits,
  schema,
  ttlText,
} from "../wasm/generated.ts";

const form = /^(\d+)([a-z]+)$/;

/** Parses a duration into milliseconds; `undefined` if invalid. */
export function milliseconds(duration: unknown): number | undefined {
  let time = duration;
  if (typeof duration === "string") {
    const [, digits, unit] = form.exec(duration) ?? [];
    time =
      unit !== undefined && Object.hasOwn(durationUnits, unit) ? Number(digits) * unitOf(unit) : undefined;
  }
  return isInteger(time, 1) ? time : undefined;
}

const unitOf = (unit: string): number => durationUnits[unit as keyof typeof durationUnits];

/** Parses a unit of the calendar into its number in UTC; `undefined` if invalid. */
export const calendarScale = (unit: unknown): number | undefined =>
  typeof unit === "string" && Object.hasOwn(calendarScales, unit)
    ? calendarScales[unit as keyof typeof calendarScales]
    : undefined;

/** Returns true for the number of a unit of the calendar at some offset from UTC. */
export const isCalendarScale = (scale: number): boolean =>
  Object.values(calendarScales).some((unit) => isInteger(Math.abs(unit - scale), 0, schema.maxUtcOffset));

const offsetForm = /^([+-])(\d\d):([0-5]\d)$/;

/** Parses an offset from UTC into minutes; `undefined` if invalid. */
export function minutes(offset: unknown): number | undefined {
  if (offset === "Z") return 0;
  const [, sign, hours, minutes] = (typeof offset === "string" && offsetForm.exec(offset)) || [];
  const time = Number(hours) * 60 + Number(minutes);
  return time <= schema.maxUtcOffset ? (sign === "-" ? -time : time) : undefined;
}

/** Returns true for an integer of a range. */
export const isInteger = (value: unknown, min = 0, max: number = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;

/** Returns the accepted values of a `ttl`, in words. */
export const ttlExpected = (): string => fill(ttlText, { forms: durationFormsText });

/** The accepted values of a duration, in words. */
export const durationExpected: string = /* @__PURE__ */ fill(durationText, { forms: durationFormsText });
