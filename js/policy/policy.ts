import {
  type ErrorCode,
  fieldError,
  fill,
  integer,
  inWords,
  type TollgateError,
  worded,
} from "../errors/error.ts";
import {
  algorithmFormsText,
  algorithms,
  algorithmText,
  calendarOnlyText,
  durationFormsText,
  factorForMostText,
  freeForBucketText,
  mostOfBanText,
  nameFormsText,
  nameText,
  noCalendarText,
  onceText,
  policyFormsText,
  policyText,
  scaleFormsText,
  scaleText,
  schema,
  secondValueText,
  unitText,
  unknownFieldText,
  utcOffsetFormsText,
  utcOffsetText,
} from "../wasm/generated.ts";
import {
  calendarScale,
  durationExpected,
  isInteger,
  milliseconds,
  minutes,
  ttlExpected,
} from "./durations.ts";

/** A validated policy. */
export interface ReadPolicy {
  readonly algorithm: string;
  readonly name: string | undefined;
  /**
   * The algorithm's position, the limit, the rate, the scale as it is stored, and the length and `most` of a ban, whose
   * `after` and factor are the limit and the rate.
   */
  readonly numbers: PolicyNumbers;
  /** 0: left out, 1: denied hits count, 2: they are free. */
  readonly denied: number;
}

type PolicyNumbers = readonly [
  algorithm: number,
  limit: number,
  rate: number,
  scale: number,
  length: number,
  most: number,
];

interface AlgorithmSchema {
  readonly position: number;
  readonly name: string;
  readonly fields: Readonly<Record<string, { readonly role: Role; readonly default?: number }>>;
}

type Role =
  | "algorithm"
  | "limit"
  | "rate"
  | "scale"
  | "utcOffset"
  | "ttl"
  | "after"
  | "length"
  | "factor"
  | "most"
  | "name"
  | "unit"
  | "denied";

/** The values of a policy's fields, by role. */
type Values = { [role in Role]?: unknown };

/** Reads and validates a policy by the schema. Each of its fields is read once. */
export function readPolicy(policy: unknown): ReadPolicy {
  const entries = entriesOf(policy);
  const found = schemaOf(entries);
  const [values, twice] = valuesOf(entries, found);
  if ("after" in found.fields) return banOf(found, values);
  const limit = amount(found, values, "limit");
  if (twice === "rate") throw givenTwice(found, twice);
  const rate = amount(found, values, "rate");
  const time = scale(found, values);
  if (twice !== undefined) throw givenTwice(found, twice);
  const numbers = [found.position, limit, rate, time - offset(time, values), 0, 0] as const;
  const name = nameIn("name", values, nameText);
  nameIn("unit", values, unitText);
  return { algorithm: found.name, numbers, name, denied: deniedIn(found, values) };
}

/** Reads a ban. */
function banOf(found: AlgorithmSchema, values: Values): ReadPolicy {
  const after = count(found, values, "after");
  const time = scale(found, values);
  const length = scale(found, values, "length");
  const factor = count(found, values, "factor");
  const numbers = [found.position, after, factor, time, length, longest(values, factor, length)] as const;
  return { algorithm: found.name, numbers, name: nameIn("name", values, nameText), denied: 0 };
}

/** Returns the length of the longest ban. */
function longest({ most }: Values, factor: number, length: number): number {
  const wrongMost = (expected: string) => wrong("invalid_policy", "most", most, expected);
  if (factor === 1) {
    if (most !== undefined) throw wrongMost(factorForMostText);
    return length;
  }
  const time = milliseconds(most);
  if (time === undefined || time < length) throw wrongMost(mostOfBanText);
  return time;
}

/** Returns the `after` or the factor of a ban. */
function count(found: AlgorithmSchema, values: Values, role: "after" | "factor"): number {
  const value = values[role] ?? found.fields[role]?.default;
  if (isInteger(value, 1, schema.maxBanCount)) return value;
  throw wrong("invalid_policy", role, value, integer(1, schema.maxBanCount));
}

function entriesOf(policy: unknown): [string, unknown][] {
  if (typeof policy !== "object" || policy === null || Array.isArray(policy))
    throw wrong(
      "invalid_policy",
      "policy",
      policy,
      fill(policyText, { forms: policyFormsText }),
      policyFormsText,
    );
  return Object.entries(policy);
}

const table: Readonly<Record<string, AlgorithmSchema>> = algorithms;

function schemaOf(entries: readonly [string, unknown][]): AlgorithmSchema {
  let algorithm: unknown;
  for (const [name, value] of entries) if (name === "algorithm") algorithm = value;
  if (typeof algorithm === "string" && Object.hasOwn(table, algorithm))
    return table[algorithm] as AlgorithmSchema;
  const known = [...new Set(Object.values(table).map(({ name }) => name))].join(", ");
  const forms = fill(algorithmFormsText, { known });
  throw wrong("unknown_algorithm", "algorithm", algorithm, fill(algorithmText, { forms }), forms);
}

/** Returns the values by role, and the role of a field that occurs in both of its spellings. */
function valuesOf(entries: readonly [string, unknown][], found: AlgorithmSchema): [Values, Role | undefined] {
  const values: Values = {};
  let twice: Role | undefined;
  let unknown: string | undefined;
  for (const [written, value] of entries) {
    if (value == null) continue;
    const name = (schema.snakeCase as Readonly<Record<string, string>>)[written] ?? written;
    const field = Object.hasOwn(found.fields, name) ? found.fields[name] : undefined;
    if (field === undefined) unknown = unknown === undefined || written < unknown ? written : unknown;
    else if (values[field.role] === undefined) values[field.role] = value;
    else twice = field.role;
  }
  if (unknown !== undefined) throw unknownField(unknown, found);
  return [values, twice];
}

function unknownField(written: string, found: AlgorithmSchema): TollgateError {
  const { name: algorithm, fields } = found;
  const values = { found: inWords(written), algorithm, known: Object.keys(fields).join(", ") };
  return worded("unknown_field", unknownFieldText, values);
}

const givenTwice = (found: AlgorithmSchema, role: Role) =>
  fieldError("invalid_policy", fieldOf(found, role), secondValueText, onceText);

const fieldOf = ({ fields }: AlgorithmSchema, role: Role): string =>
  Object.keys(fields).find((name) => fields[name]?.role === role) ?? role;

const wrong = (code: ErrorCode, field: string, value: unknown, expected: string, forms?: string) =>
  fieldError(code, field, value == null ? undefined : inWords(value), expected, forms);

/** Returns the limit or the rate; 1 if the algorithm has none. */
function amount(found: AlgorithmSchema, values: Values, role: "limit" | "rate"): number {
  const value = values[role];
  if (isInteger(value, 1)) return value;
  const field = fieldOf(found, role);
  if (!(field in found.fields)) return 1;
  throw wrong("invalid_policy", field, value, integer(1));
}

/** Returns the number of the `scale`, in UTC, the `per`, the `ttl` of a concurrency limit, or the length of a ban. */
function scale(
  found: AlgorithmSchema,
  values: Values,
  role: "ttl" | "scale" | "length" = "ttl" in found.fields ? "ttl" : "scale",
): number {
  const hasCalendar = "utcOffset" in found.fields;
  const value = values[role];
  const time = milliseconds(value) ?? (hasCalendar ? calendarScale(value) : undefined);
  if (time !== undefined && (role !== "ttl" || time <= schema.maxTtl)) return time;
  const field = fieldOf(found, role);
  const otherwise = value === undefined ? found.fields[field]?.default : undefined;
  if (otherwise !== undefined) return otherwise;
  if (hasCalendar)
    throw wrong("invalid_policy", field, value, fill(scaleText, { forms: scaleFormsText }), scaleFormsText);
  const duration = durationExpected + (calendarScale(value) === undefined ? "" : noCalendarText);
  const expected = role === "ttl" ? ttlExpected() : duration;
  throw wrong("invalid_policy", field, value, expected, durationFormsText);
}

/** Returns the offset from UTC of a scale, in minutes. */
function offset(scale: number, { utcOffset }: Values): number {
  if (utcOffset === undefined) return 0;
  if (scale > 0) throw wrong("invalid_policy", "utcOffset", utcOffset, calendarOnlyText);
  const offset = minutes(utcOffset);
  if (offset !== undefined) return offset;
  throw wrong("invalid_policy", "utcOffset", utcOffset, fill(utcOffsetText, { forms: utcOffsetFormsText }));
}

/** Returns the name or the unit, if there is one. */
function nameIn(role: "name" | "unit", { [role]: name }: Values, expected: string): string | undefined {
  if (name === undefined || (typeof name === "string" && /^[ -~]{1,64}$/.test(name))) return name;
  throw wrong("invalid_policy", role, name, fill(expected, { forms: nameFormsText }));
}

function deniedIn(found: AlgorithmSchema, { denied }: Values): number {
  if (denied === undefined) return 0;
  const choice = 1 + schema.deniedWords.indexOf(denied as "count");
  if (choice === 0) throw wrong("invalid_policy", "denied", denied, oneOf(schema.deniedWords));
  // Only windows count denied hits.
  if (choice === 1 && "capacity" in found.fields)
    throw wrong("invalid_policy", "denied", denied, freeForBucketText);
  return choice;
}

/** Returns words in quotes, with "or" between them. */
export const oneOf = (words: readonly string[]): string => words.map(inWords).join(" or ");
