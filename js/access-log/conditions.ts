import type { Field, Format } from "./format.ts";

/** A condition on a field of a line. */
export interface Condition {
  readonly field: string;
  readonly operator: string;
  readonly value: string;
}

/** How each operator compares. Those of order compare numbers; `!=` also holds for a line without the field. */
const operators: Readonly<Record<string, (found: string | undefined, value: string) => boolean>> = {
  "==": (found, value) => found === value,
  "!=": (found, value) => found !== value,
  "^=": (found, value) => found?.startsWith(value) === true,
  "$=": (found, value) => found?.endsWith(value) === true,
  "*=": (found, value) => found?.includes(value) === true,
  "<": (found, value) => Number(found) < Number(value),
  "<=": (found, value) => Number(found) <= Number(value),
  ">": (found, value) => Number(found) > Number(value),
  ">=": (found, value) => Number(found) >= Number(value),
};

/** The operators, as errors and the help list them. */
export const operatorNames: string = Object.keys(operators).join(" ");

const written = /^\s*([^\s=!^$*<>]+)\s*(==|!=|\^=|\$=|\*=|<=|>=|<|>)\s*(.*?)\s*$/s;

/** Parses a condition, such as `status == 401`; returns why it is invalid as a text. A value may be quoted. */
export function conditionOf(text: string): Condition | string {
  const [, field, operator = "", rest = ""] = written.exec(text) ?? [];
  if (field === undefined)
    return `write it as status == 401, path ^= /api: a field, one of ${operatorNames}, and a value`;
  const value = /^(["'])(.*)\1$/s.exec(rest)?.[2] ?? rest;
  if (/[<>]/.test(operator) && (value === "" || !Number.isFinite(Number(value))))
    return `${operator} compares numbers, and ${JSON.stringify(value)} is none`;
  return { field, operator, value };
}

/** Returns a function that tells whether the last line meets all conditions. */
export function filterOf(conditions: readonly Condition[], format: Format): () => boolean {
  const checks = conditions.map(({ field, operator, value }) => {
    const found: Field = format.field(field);
    const meets = operators[operator] as (found: string | undefined, value: string) => boolean;
    return () => meets(found(), value);
  });
  return () => checks.every((check) => check());
}
