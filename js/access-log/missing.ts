import type { Field, Format } from "./format.ts";

/** The most names that an error lists. */
const mostNames = 40;

/** Fields that options name, and that no line had until now. */
export class MissingFields {
  readonly #time: string;
  readonly #fields: Set<string>;
  #names: readonly string[] = [];
  #format: Format | undefined;
  #values = new Map<string, Field>();

  /** `time` is the name of the field with the time, which not every format has. */
  constructor(time: string, fields: readonly string[]) {
    this.#time = time;
    this.#fields = new Set([time, ...fields]);
  }

  /** Looks for the fields in a line that lacks one of them, or that cannot be read and so may have no time. */
  look(format: Format, hasTime: boolean): void {
    if (hasTime) this.#fields.delete(this.#time);
    if (this.#format !== format) {
      this.#format = format;
      this.#values = new Map([...this.#fields].map((field) => [field, format.field(field)]));
    }
    for (const field of this.#fields)
      if (this.#values.get(field)?.() !== undefined) this.#fields.delete(field);
    if (this.#names.length === 0) this.#names = format.names();
  }

  /** Forgets all fields, since a line has them. */
  clear(): void {
    if (this.#fields.size > 0) this.#fields.clear();
  }

  /** Returns a field that no line has, and the error for it; undefined if there is none. */
  problem(): readonly [field: string, problem: string] | undefined {
    const [field] = this.#fields;
    // Without names, no line could be parsed, and the report shows the lines.
    if (field === undefined || this.#names.length === 0) return undefined;
    const quoted = JSON.stringify(field);
    if (this.#names.includes(field)) return [field, `the field ${quoted} is empty in every line`];
    const more = this.#names.length > mostNames ? ", …" : "";
    const names = `${this.#names.slice(0, mostNames).join(", ")}${more}`;
    return [field, `no line has the field ${quoted}; the fields are ${names}`];
  }
}
