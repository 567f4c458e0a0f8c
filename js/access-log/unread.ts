import { printable } from "../printable.ts";

/** The most examples that are kept. */
const mostExamples = 5;

/** A line that was left out. */
export interface LeftOutLine {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly reason: string;
}

/** Lines that were left out: how many, and the first of them. */
export interface LeftOut {
  readonly count: number;
  readonly examples: readonly LeftOutLine[];
}

/** Counts lines that are left out, and keeps the first of them. */
export class LeftOutLines implements LeftOut {
  count = 0;
  readonly examples: LeftOutLine[] = [];

  add(file: string, line: number, text: string, reason: string): void {
    this.count += 1;
    if (this.examples.length >= mostExamples) return;
    const short = text.length > 120 ? `${text.slice(0, 120)}…` : text;
    this.examples.push({ file: printable(file), line, text: printable(short), reason: printable(reason) });
  }

  toJSON(): LeftOut {
    return { count: this.count, examples: this.examples };
  }
}
