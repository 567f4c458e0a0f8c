import { writeSync } from "node:fs";

const enter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const leave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/** The signals that end the command, with their numbers. */
const ending = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

/** The alternate screen of a terminal, which is restored however the process ends. */
export class Screen {
  #isOpen = false;
  readonly #onKey: (key: string) => void;
  readonly #onResize: () => void;

  constructor(onKey: (key: string) => void, onResize: () => void) {
    this.#onKey = onKey;
    this.#onResize = onResize;
  }

  get size(): { readonly columns: number; readonly lines: number } {
    return { columns: process.stdout.columns || 80, lines: process.stdout.rows || 24 };
  }

  open(): void {
    process.on("exit", () => this.close());
    for (const [signal, number] of Object.entries(ending))
      process.on(signal, () => {
        this.close();
        process.exit(128 + number);
      });
    process.on("SIGCONT", () => {
      this.#enter();
      this.#onResize();
    });
    process.stdout.on("resize", this.#onResize);
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", (text) => {
      for (const key of keysIn(String(text))) this.#press(key);
    });
    this.#enter();
  }

  /** Draws lines over what was there. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const { lines: room } = this.size;
    // Cleared before it is written: behind a line that fills the terminal, its last column would be.
    const text = lines.slice(0, room).map((line) => `\x1b[K${line}`);
    const rest = lines.length < room ? "\r\n\x1b[J" : "";
    process.stdout.write(`\x1b[H${text.join("\r\n")}${rest}`);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.stdin.setRawMode(false);
    process.stdin.pause();
    try {
      // At once, since the process may end now.
      writeSync(process.stdout.fd, leave);
    } catch {
      // The terminal is gone.
    }
  }

  #enter(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    process.stdin.setRawMode(true);
    process.stdin.resume();
    process.stdout.write(enter);
  }

  #press(key: string): void {
    // In raw mode the terminal sends no signals.
    if (key === "\x03") process.kill(process.pid, "SIGINT");
    else if (key === "\x1a") {
      this.close();
      process.kill(process.pid, "SIGSTOP");
    } else this.#onKey(key);
  }
}

/** Returns the keys in what a terminal sent: characters, and sequences that begin with an escape. */
function keysIn(text: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape begins a sequence
  return text.match(/\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|[\s\S]/gu) ?? [];
}
