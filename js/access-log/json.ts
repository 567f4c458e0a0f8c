import { type Field, type Format, namesOf, pathOf, textOf } from "./format.ts";
import type { Times } from "./times.ts";

/** A JSON object on each line. A field in another object is named with dots: `request.method`. */
export class JsonLines implements Format {
  time = Number.NaN;
  readonly #times: Times;
  readonly #timeName: string;
  readonly #timeOf: () => unknown;
  #entry: unknown = {};

  constructor(times: Times, timeName = "time") {
    this.#times = times;
    this.#timeName = timeName;
    this.#timeOf = this.#value(timeName);
  }

  read(line: string): string | undefined {
    let entry: unknown;
    try {
      entry = JSON.parse(line);
    } catch {
      return "it is not JSON";
    }
    if (typeof entry !== "object" || entry === null) return "it is not a JSON object";
    this.#entry = entry;
    const found = this.#timeOf();
    if (found === undefined) return `it has no field ${this.#timeName}`;
    this.time = this.#times.read(found);
    return Number.isNaN(this.time) ? `${this.#timeName}: ${JSON.stringify(found)} is not a time` : undefined;
  }

  names(): readonly string[] {
    return namesIn(this.#entry as object, "");
  }

  field(name: string): Field {
    const value = this.#value(name);
    return name === "path" ? () => pathOf(textOf(value())) : () => textOf(value());
  }

  /** Returns a function that looks up a value, first by the name under which it last found one. */
  #value(name: string): () => unknown {
    const known = namesOf(name).map((name) => [name, name.split(".")] as const);
    let last = known[0] as (typeof known)[number];
    return () => {
      const found = valueAt(this.#entry, ...last);
      if (found !== undefined || known.length === 1) return found;
      for (const each of known) {
        const other = valueAt(this.#entry, ...each);
        if (other === undefined) continue;
        last = each;
        return other;
      }
      return undefined;
    };
  }
}

/** Returns the names of all fields; those of an object in a field follow a dot. */
const namesIn = (entry: object, prefix: string): string[] =>
  Object.entries(entry).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? namesIn(value, `${prefix}${name}.`)
      : [`${prefix}${name}`],
  );

/** Returns the value of a field by its whole name or, if that has dots, step by step. */
function valueAt(entry: unknown, name: string, steps: readonly string[]): unknown {
  const own = (entry as Readonly<Record<string, unknown>>)[name];
  if (own !== undefined || steps.length === 1) return own ?? undefined;
  let value = entry;
  for (const step of steps) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[step];
  }
  return value ?? undefined;
}
