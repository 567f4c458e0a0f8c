import { count } from "../access-log/words.ts";

const width = 24;
const interval = 100;

/** Shows the progress of a replay on a terminal; prints nothing elsewhere. */
export class Progress {
  readonly #isShown = process.stderr.isTTY === true;
  readonly #total: number | undefined;
  readonly #started = performance.now();
  #shown = Number.NEGATIVE_INFINITY;

  /** `total` is the size of all logs in bytes, if it is known. */
  constructor(total: number | undefined) {
    this.#total = total;
  }

  show(read: number, lines: number): void {
    const now = performance.now();
    if (!this.#isShown || now - this.#shown < interval) return;
    this.#shown = now;
    const speed = Math.round((lines / (now - this.#started)) * 1_000);
    process.stderr.write(`\r\x1b[K${this.#bar(read)}${count(lines)} lines, ${count(speed)} a second`);
  }

  end(): void {
    if (this.#isShown) process.stderr.write("\r\x1b[K");
  }

  #bar(read: number): string {
    if (!this.#total) return "";
    const share = Math.min(1, read / this.#total);
    const full = Math.floor(share * width);
    return `${"█".repeat(full)}${"░".repeat(width - full)} ${String(Math.floor(share * 100)).padStart(3)} %  `;
  }
}
