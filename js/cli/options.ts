import { parseArgs } from "node:util";
import { UsageError } from "./errors.ts";
import { nearest } from "./near.ts";

/** An option of a command. */
export interface Option {
  /** The name of its value in the help: `<json>`; left out for a switch. */
  readonly value?: string;
  readonly short?: string;
  /** Whether it may occur several times. */
  readonly multiple?: boolean;
  /** The accepted values, if there are only a few. */
  readonly among?: readonly string[];
  readonly help: string;
}

/** The options of a command by their names. */
export type Options = Readonly<Record<string, Option>>;

/** The operands and options of a command line. */
export class Given {
  readonly operands: readonly string[];
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(operands: readonly string[], values: ReadonlyMap<string, readonly string[]>) {
    this.operands = operands;
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  one(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  required(name: string): string {
    const value = this.one(name);
    if (value === undefined) throw new UsageError(`--${name} is required`);
    return value;
  }

  /** Returns the value of an option as an integer within a range; `otherwise` if the option is left out. */
  integer(name: string, otherwise: number, min: number, max: number): number {
    const text = this.one(name);
    if (text === undefined) return otherwise;
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(number >= min && number <= max))
      throw new UsageError(`--${name}: ${JSON.stringify(text)} is not an integer from ${min} to ${max}`);
    return number;
  }
}

/** Parses and validates a command line. */
export function readOptions(args: readonly string[], options: Options): Given {
  const known: Options = { ...options, help: helpOption };
  const names = Object.entries(known);
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      names.map(([name, { value, short }]) => [
        name,
        { type: value === undefined ? "boolean" : "string", ...(short === undefined ? {} : { short }) },
      ]),
    ),
  });
  const operands: string[] = [];
  const values = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const option = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (option === undefined) throw unknownOption(token.rawName, Object.keys(known));
    values.set(token.name, [
      ...(values.get(token.name) ?? []),
      checkedValue(token.name, token.value, option),
    ]);
    if (!option.multiple && option.value !== undefined && (values.get(token.name)?.length ?? 0) > 1)
      throw new UsageError(`--${token.name} is given twice`);
  }
  return new Given(operands, values);
}

export const helpOption: Option = { short: "h", help: "show this help" };

function checkedValue(name: string, value: string | undefined, option: Option): string {
  if (option.value === undefined) {
    if (value !== undefined) throw new UsageError(`--${name} takes no value`);
    return "";
  }
  if (value === undefined || value === "")
    throw new UsageError(`--${name} needs a value: --${name} ${option.value}`);
  if (option.among !== undefined && !option.among.includes(value)) {
    const meant = nearest(value, option.among);
    const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
    throw new UsageError(
      `--${name}: ${JSON.stringify(value)} is not one of ${option.among.join(", ")}${hint}`,
    );
  }
  return value;
}

function unknownOption(rawName: string, known: readonly string[]): UsageError {
  const meant = nearest(rawName.replace(/^-+/, ""), known);
  const hint =
    meant === undefined
      ? `there are ${known.map((name) => `--${name}`).join(", ")}`
      : `did you mean --${meant}?`;
  return new UsageError(`${rawName} is not an option; ${hint}`);
}
