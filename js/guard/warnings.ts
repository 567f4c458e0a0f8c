import { printable } from "../printable.ts";

const given = new Set<string>();

/** Warns on the console, once in a process for each kind of warning. */
export function warnOnce(kind: string, text: string): void {
  if (given.has(kind)) return;
  given.add(kind);
  console.warn(`tollgate: ${text}`);
}

/** Warnings of one kind that may be many, such as one for each request: the first, and one a minute with their number. */
export class Warnings {
  #warnedAt = Number.NEGATIVE_INFINITY;
  #since = 0;

  /** Warns, unless there was a warning in the last minute. */
  warn(text: string): void {
    const now = performance.now();
    if (now - this.#warnedAt < 60_000) {
      this.#since++;
      return;
    }
    const others = this.#since === 0 ? "" : ` (and ${this.#since} such before)`;
    this.#warnedAt = now;
    this.#since = 0;
    console.warn(`tollgate: ${printable(text)}${others}`);
  }
}
