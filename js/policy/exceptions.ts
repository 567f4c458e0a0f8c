import { copiedOptions } from "../checks.ts";
import {
  fieldError,
  fill,
  integer,
  invalidField,
  inWords,
  type TollgateError,
  worded,
} from "../errors/error.ts";
import type { ExceptionEnd, ExceptionNumbers, KeyException } from "../types.ts";
import {
  decisionAndMoreText,
  emptyObjectText,
  exceptionEndText,
  exceptionFormsText,
  exceptionLengthText,
  exceptionSchema,
  exceptionText,
  fillableCapacityText,
  onceText,
  schema,
  secondValueText,
  storedLimitText,
  unknownFieldText,
} from "../wasm/generated.ts";
import type { SavedRow, ShapeNames } from "../wasm/states.ts";
import { isRecord } from "./costs.ts";
import { durationExpected, isInteger, milliseconds } from "./durations.ts";
import { type ReadPolicies, reachableText } from "./policies.ts";

/** The position of the part that is a decision: it is of no policy. */
export const ofNoPolicy = -1;

/** A part of an exception: the position of its policy, then the position and the number of each field. */
export type ExceptionPart = readonly number[];

const known: readonly string[] = exceptionSchema.fields;
const numbersFrom = 2;

/** Reads an exception for a limiter. Each of its fields is read once. */
export function readException(exception: unknown, read: ReadPolicies): readonly ExceptionPart[] {
  if (!isRecord(exception)) throw wrongException(exception);
  const parts = new Map<number, number[]>();
  for (const [name, value] of Object.entries(exception)) {
    if (value == null) continue;
    if (isRecord(value))
      for (const [field, number] of Object.entries(value)) addField(parts, read, name, field, number);
    else addField(parts, read, undefined, name, value);
  }
  const list = [...parts].map(([position, numbers]) => [position, ...numbers]);
  if (list.length === 0) throw wrongException(emptyObjectText, true);
  if (parts.has(ofNoPolicy) && (list.length > 1 || (list[0] as number[]).length > 3))
    throw wrongException(decisionAndMoreText, true);
  return list;
}

/** Adds a field of a policy; without a name, of the only policy or of none. */
function addField(
  parts: Map<number, number[]>,
  read: ReadPolicies,
  policy: string | undefined,
  written: string,
  value: unknown,
): void {
  const name = (schema.snakeCase as Readonly<Record<string, string>>)[written] ?? written;
  const field = known.indexOf(name);
  const isDecision = field >= 0 && field < numbersFrom;
  if (field < 0 || (isDecision && policy !== undefined)) {
    const values = { found: inWords(written), algorithm: exceptionText };
    throw worded("unknown_field", unknownFieldText, {
      ...values,
      known: known.slice(numbersFrom).join(", "),
    });
  }
  if (value == null) return;
  const path = policy === undefined ? name : `${policy}.${name}`;
  const number = numberOf(name, path, value);
  const position = isDecision ? ofNoPolicy : read.position(policy);
  const own = parts.get(position) ?? [];
  parts.set(position, own);
  for (let at = 0; at < own.length; at += 2)
    if (own[at] === field) throw fieldError("invalid_option", path, secondValueText, onceText);
  own.push(field, number);
}

/** Returns the number of a field's value. */
function numberOf(field: string, path: string, value: unknown): number {
  const wrong = (expected: string) => invalidField("invalid_option", path, value, expected);
  switch (field) {
    case "allow":
    case "deny":
      if (value !== true) throw wrong("true");
      return 1;
    case "for":
    case "most": {
      const time = milliseconds(value);
      if (time === undefined) throw wrong(durationExpected);
      return time;
    }
    default: {
      const most = field === "after" || field === "factor" ? schema.maxBanCount : undefined;
      if (!isInteger(value, 1, most)) throw wrong(integer(1, most));
      return value;
    }
  }
}

const wrongException = (found: unknown, isInWords = false): TollgateError =>
  isInWords
    ? fieldError("invalid_option", "exception", found as string, exceptionFormsText)
    : invalidField("invalid_option", "exception", found, exceptionFormsText);

/** When an exception ends: a time, or so long after it is set. */
export type ReadEnd = { readonly until: number } | { readonly length: number };

/** Reads when an exception ends. */
export function readEnd(end: unknown): ReadEnd {
  const { until, for: length } = copiedOptions((end ?? {}) as ExceptionEnd, ["until", "for"]);
  if (length !== undefined) {
    if (until !== undefined) throw fieldError("invalid_option", "until", secondValueText, onceText);
    const time = milliseconds(length);
    if (time === undefined || time > exceptionSchema.longest)
      throw invalidField("invalid_option", "for", length, exceptionLengthText);
    return { length: time };
  }
  const time = until instanceof Date ? until.getTime() : until;
  if (!isInteger(time)) throw invalidField("invalid_option", "until", until, exceptionEndText);
  return { until: time };
}

/** Returns the time at which an exception ends that is set now. */
export function endAt(end: ReadEnd, now: number): number {
  const time = Math.floor(now);
  if ("length" in end) return Math.min(time + end.length, Number.MAX_SAFE_INTEGER);
  if (end.until <= time || end.until - time > exceptionSchema.longest)
    throw invalidField("invalid_option", "until", end.until, exceptionEndText);
  return end.until;
}

/**
 * Returns parts as numbers that Rust reads: for each the number of its name, how many follow, its end, when it was set, and
 * its fields.
 */
export const flatParts = (
  parts: readonly ExceptionPart[],
  names: ShapeNames,
  until: number,
  now: number,
): number[] =>
  parts.flatMap(([position = ofNoPolicy, ...fields]) => [
    position === ofNoPolicy ? names.number("") : position,
    2 + fields.length,
    until,
    Math.floor(now),
    ...fields,
  ]);

/** Returns what is accepted in the place of a number that the policy cannot take. */
function limitExpected(algorithm: string | undefined, stored: boolean): string {
  if (algorithm === "sliding_window") return storedLimitText;
  return algorithm === "concurrency"
    ? reachableText(stored)
    : fill(fillableCapacityText, { max: Number.MAX_SAFE_INTEGER });
}

/** Returns the error for a policy that cannot take its numbers. */
export function unfit(
  read: ReadPolicies,
  parts: readonly ExceptionPart[],
  position: number,
  stored: boolean,
): TollgateError {
  const [, ...fields] = parts.find(([own]) => own === position) ?? [];
  const algorithm = read.origins[position]?.algorithm;
  const field = algorithm === "sliding_window" || algorithm === "concurrency" ? "limit" : "capacity";
  const at = fields.findIndex((own, index) => index % 2 === 0 && known[own] === field);
  const expected = limitExpected(algorithm, stored);
  return invalidField("invalid_option", `${read.names[position]}.${field}`, fields[at + 1], expected);
}

/** Returns the exception among saved rows that is in force; `null` if there is none. */
export function keyException(
  saved: readonly SavedRow[],
  { names }: ShapeNames,
  now: number,
): KeyException | null {
  let until = 0;
  const parts: [name: string, fields: readonly number[]][] = [];
  for (const [name, [algorithm, , end = 0, , , ...fields]] of saved) {
    if (algorithm !== exceptionSchema.position || end <= now) continue;
    until = Math.max(until, end);
    parts.push([names[name] as string, fields]);
  }
  return until === 0 ? null : exceptionOf(until, parts);
}

/** Returns an exception from its end and its parts: the name of the policy, and position and number of each field. */
export function exceptionOf(
  until: number,
  parts: readonly (readonly [name: string, fields: readonly number[]])[],
): KeyException {
  const policies: [string, ExceptionNumbers][] = [];
  for (const [name, fields] of parts) {
    const numbers: [string, number][] = [];
    for (let at = 0; at < fields.length; at += 2) {
      const field = known[fields[at] as number] as string;
      if (field === "allow" || field === "deny") return { until, [field]: true } as KeyException;
      numbers.push([field, fields[at + 1] as number]);
    }
    policies.push([name, Object.fromEntries(numbers) as ExceptionNumbers]);
  }
  // Unlike an object literal, it takes any name.
  return { until, policies: Object.fromEntries(policies) };
}
