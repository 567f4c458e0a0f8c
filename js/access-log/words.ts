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

/** Returns the first and the last time of a timeline, without the date if it is the same. */
export function ends({
  start,
  step,
  allowed,
}: Pick<TimelineSummary, "start" | "step" | "allowed">): [string, string] {
  const last = start + step * allowed.length;
  const isOneDay = moment(start).slice(0, 10) === moment(last).slice(0, 10);
  const [from, to] = [isOneDay ? 11 : 0, step < 60_000 ? 19 : 16];
  return [moment(start).slice(from, to), moment(last).slice(from, to)];
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
