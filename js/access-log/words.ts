import type { Policies, Policy } from "../index.ts";
import { milliseconds } from "../policy/durations.ts";
import type { TimelineSummary } from "./timeline.ts";

const whole = new Intl.NumberFormat("en");

/** Returns a number with separators of thousands. */
export const count = (number: number): string => whole.format(number);

/** Returns a number of things: `1 line`, `2 lines`. */
export const counted = (number: number, thing: string): string =>
  `${count(number)} ${thing}${number === 1 ? "" : "s"}`;

/** Returns a share in percent. Only the whole is `100 %`, and only 0 is `0 %`. */
export function percent(part: number, all: number): string {
  if (all === 0 || part === 0) return "0 %";
  const share = (part / all) * 100;
  for (const digits of [1, 2, 3]) {
    const text = share.toFixed(digits);
    if (Number(text) > 0 && (part === all || Number(text) < 100)) return `${text} %`;
  }
  return part < all / 2 ? "< 0.001 %" : "> 99.999 %";
}

const spans = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** Returns a duration in its largest unit: `1.5 h`. */
export function span(milliseconds: number | null): string {
  if (milliseconds === null || milliseconds === Number.POSITIVE_INFINITY) return "never";
  for (const [length, unit] of spans) {
    if (milliseconds < length) continue;
    const value = milliseconds / length;
    return `${Number.isInteger(value) ? value : value.toFixed(1)} ${unit}`;
  }
  return `${milliseconds} ms`;
}

/** Returns a time of UTC: `2026-10-10 13:55:36`. */
export const moment = (time: number): string => new Date(time).toISOString().slice(0, 19).replace("T", " ");

type Timespan = Pick<TimelineSummary, "start" | "step" | "allowed">;

/** Returns the first and the last time of a timeline, without the date if it is the same. */
export function ends({ start, step, allowed }: Timespan): [string, string] {
  const last = start + step * allowed.length;
  const isOneDay = moment(start).slice(0, 10) === moment(last).slice(0, 10);
  const [from, to] = [isOneDay ? 11 : 0, step < 60_000 ? 19 : 16];
  return [moment(start).slice(from, to), moment(last).slice(from, to)];
}

/** The times between two marks of an axis, in milliseconds. */
const intervals = [60, 300, 600, 1_800, 3_600, 7_200, 10_800, 14_400, 21_600, 43_200, 86_400].map(
  (each) => each * 1_000,
);

/** A mark of an axis: where it is, from 0 to 1, and its text. */
export interface Mark {
  readonly at: number;
  readonly text: string;
}

/** Returns the marks of a timeline's axis, at most so many: whole minutes, hours or days of UTC. */
export function marksOf({ start, step, allowed }: Timespan, most: number): readonly Mark[] {
  const length = step * allowed.length;
  const fits = (interval: number) => length / interval <= most;
  let interval = intervals.find(fits) ?? 86_400_000;
  while (!fits(interval)) interval *= 2;
  const marks: Mark[] = [];
  for (let time = Math.ceil(start / interval) * interval; time < start + length; time += interval) {
    const text = moment(time);
    // Midnight has its date.
    marks.push({
      at: (time - start) / length,
      text: time % 86_400_000 === 0 ? text.slice(5, 10) : text.slice(11, 16),
    });
  }
  return marks;
}

/** Returns a limit in words; `none` if no limit is enough, for a hit that costs more than any limit. */
export const limitInWords = (limit: number): string => (Number.isFinite(limit) ? count(limit) : "none");

/**
 * Returns a policy in a few words. `showsDenied` tells whether they include how a window counts denied hits; by default
 * they do if the policy sets it.
 */
export function inWords(policies: Policies, showsDenied?: boolean): string {
  // Among several policies, denied hits are always free.
  if (Array.isArray(policies))
    return policies.map((each) => inWords(each, policies.length > 1 ? false : showsDenied)).join(" + ");
  const policy = policies as Policy;
  const fields: Readonly<Record<string, unknown>> = { ...policy };
  const name = policy.name === undefined ? "" : `${policy.name}: `;
  if (policy.algorithm === "ban") {
    const { after, scale: within, for: length } = policy;
    return `${name}ban, ${scale(length)} after ${counted(after, "denial")} in ${scale(within)}`;
  }
  if (fields["scale"] !== undefined) {
    const shown = (showsDenied ?? fields["denied"] != null) ? deniedInWords(fields["denied"]) : "";
    return `${name}${policy.algorithm}, ${amount(fields["limit"])} in ${scale(fields["scale"])}${shown}`;
  }
  const rate = fields["refillRate"] ?? fields["refill_rate"] ?? fields["leakRate"] ?? fields["leak_rate"];
  return `${name}${policy.algorithm}, ${amount(fields["capacity"])} at once, ${amount(rate)} per ${scale(fields["per"] ?? "1s")}`;
}

/** Returns a scale in its largest whole unit, however it is written: `1m`, `90s`. A unit of the calendar stays as it is. */
function scale(value: unknown): string {
  const time = milliseconds(value);
  if (time === undefined) return String(value);
  const [length, unit] = spans.find(([length]) => time % length === 0) ?? [1, "ms"];
  return `${time / length}${unit}`;
}

/** Returns the effect of a denied hit, which is free unless the policy counts it. */
const deniedInWords = (denied: unknown) =>
  denied === "count" ? ", denied hits count" : ", denied hits are free";

const amount = (value: unknown) => (typeof value === "number" ? count(value) : String(value));
