import { durationFormsText, durationText, durationUnits } from "./core/generated.ts";
import { fill } from "./error.ts";

const form = /^(\d+)([a-z]+)$/;

/** Returns a duration in milliseconds; `undefined` if it is none. */
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

/** Returns true for an integer of a range. */
export const isInteger = (value: unknown, min = 0, max: number = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;

/** A duration, in words. */
export const durationExpected: string = /* @__PURE__ */ fill(durationText, { forms: durationFormsText });
