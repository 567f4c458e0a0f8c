import { Combined } from "./combined.ts";
import { Csv, isHeader } from "./csv.ts";
import type { Format, FormatName } from "./format.ts";
import { JsonLines } from "./json.ts";
import { type TimeOptions, Times } from "./times.ts";

/** The options of a log's format. */
export interface FormatOptions extends TimeOptions {
  /** The format; by default it is detected from the first lines. */
  readonly format?: FormatName | undefined;
  /** The field with the time, in JSON lines and CSV. */
  readonly time?: string | undefined;
}

/** Returns the format of a log, by its first lines unless it is an option; undefined if it is not recognised. */
export function detect(lines: readonly string[], options: FormatOptions): Format | undefined {
  const name = options.format ?? nameOf(lines, options);
  const times = new Times(options);
  switch (name) {
    case "combined":
      return new Combined(times);
    case "json":
      return new JsonLines(times, options.time);
    case "csv":
      return new Csv(times, options.time);
    default:
      return undefined;
  }
}

/** Detects the format. Some of the first lines may be cut off or have another format; a header is the very first. */
function nameOf(lines: readonly string[], { time }: FormatOptions): FormatName | undefined {
  // With the usual name too: then the given one is misspelt, and the error lists the columns.
  if (lines[0] !== undefined && (isHeader(lines[0], time) || isHeader(lines[0]))) return "csv";
  const combined = new Combined(new Times());
  for (const line of lines) {
    if (line.startsWith("{")) return "json";
    if (combined.read(line) === undefined) return "combined";
  }
  return undefined;
}
