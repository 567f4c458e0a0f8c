import { type Field, type Format, namesOf, pathOf, textOf } from "./format.ts";
import type { Times } from "./times.ts";

const separators = [",", ";", "\t"] as const;

/** Lines of values, named by the first line. Commas, semicolons or tabs separate them; quotes may surround them. */
export class Csv implements Format {
  time = Number.NaN;
  readonly #times: Times;
  readonly #timeName: string;
  #separator = ",";
  #columns: readonly string[] | undefined;
  #timeColumn = -1;
  #values: readonly string[] = [];

  constructor(times: Times, timeName = "time") {
    this.#times = times;
    this.#timeName = timeName;
  }

  read(line: string): string | undefined {
    if (this.#columns === undefined) return this.#readHeader(line);
    const values = split(line, this.#separator);
    if (values === undefined) return "a quote is not closed";
    if (values.length !== this.#columns.length)
      return `it has ${values.length} values for ${this.#columns.length} columns`;
    this.#values = values;
    const found = values[this.#timeColumn];
    if (found === undefined) return `there is no column ${this.#timeName}`;
    this.time = this.#times.read(found);
    return Number.isNaN(this.time) ? `${this.#timeName}: ${JSON.stringify(found)} is not a time` : undefined;
  }

  names(): readonly string[] {
    return this.#columns ?? [];
  }

  field(name: string): Field {
    // The header is not read yet.
    let position: number | undefined;
    const value = () => {
      position ??= columnOf(this.#columns ?? [], name);
      return textOf(this.#values[position]);
    };
    return name === "path" ? () => pathOf(value()) : value;
  }

  #readHeader(line: string): string {
    this.#separator = separatorOf(line);
    this.#columns = headerOf(line);
    this.#timeColumn = columnOf(this.#columns, this.#timeName);
    return "";
  }
}

/** Returns true if a line names columns, one of which is the time's. */
export const isHeader = (line: string, timeName = "time"): boolean =>
  separators.some((separator) => line.includes(separator)) && columnOf(headerOf(line), timeName) >= 0;

const separatorOf = (line: string): string => {
  const counts = separators.map((separator) => line.split(separator).length);
  return separators[counts.indexOf(Math.max(...counts))] as string;
};

const headerOf = (line: string): readonly string[] =>
  (split(line, separatorOf(line)) ?? []).map((name) => name.trim().replace(/^\ufeff/, ""));

const columnOf = (columns: readonly string[], name: string): number =>
  namesOf(name)
    .map((each) => columns.indexOf(each))
    .find((position) => position >= 0) ?? -1;

/** Splits a line at its separators; undefined if a quote is not closed. */
function split(line: string, separator: string): string[] | undefined {
  if (!line.includes('"')) return line.split(separator);
  const values: string[] = [];
  for (let at = 0; at <= line.length; at += 1) {
    if (line[at] !== '"') {
      const end = line.indexOf(separator, at);
      values.push(line.slice(at, end < 0 ? line.length : end));
      if (end < 0) return values;
      at = end;
      continue;
    }
    let end = line.indexOf('"', at + 1);
    // A doubled quote stands for one.
    while (end >= 0 && line[end + 1] === '"') end = line.indexOf('"', end + 2);
    if (end < 0 || (end + 1 < line.length && line[end + 1] !== separator)) return undefined;
    values.push(line.slice(at + 1, end).replaceAll('""', '"'));
    if (end + 1 === line.length) return values;
    at = end + 1;
  }
  values.push("");
  return values;
}
