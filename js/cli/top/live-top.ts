import { isCommandError } from "../errors.ts";
import { type Order, orders } from "./order.ts";
import { Screen } from "./screen.ts";
import type { Snapshot, TopSource } from "./snapshot.ts";
import { view } from "./view.ts";

/** The keys that scroll, by what terminals send for them. */
const scrolls: Readonly<Record<string, (page: number) => number>> = {
  "\x1b[A": () => -1,
  "\x1bOA": () => -1,
  "\x1b[B": () => 1,
  "\x1bOB": () => 1,
  "\x1b[5~": (page) => -page,
  "\x1b[6~": (page) => page,
  "\x1b[H": () => Number.NEGATIVE_INFINITY,
  "\x1b[1~": () => Number.NEGATIVE_INFINITY,
  "\x1b[F": () => Number.POSITIVE_INFINITY,
  "\x1b[4~": () => Number.POSITIVE_INFINITY,
};

/** The live screen: what it shows, and what keys do to it. */
export class LiveTop {
  readonly #source: TopSource;
  readonly #interval: number;
  readonly #screen: Screen;
  #snapshot: Snapshot | undefined;
  #order: Order;
  #filter: string;
  #isTyping = false;
  #isPaused = false;
  #isHelping = false;
  #offset = 0;
  #error = "";
  #timer: NodeJS.Timeout | undefined;
  #quit: () => void = () => {};
  #fail: (error: unknown) => void = () => {};

  constructor(source: TopSource, interval: number, order: Order, filter: string) {
    this.#source = source;
    this.#interval = interval;
    this.#order = order;
    this.#filter = filter;
    this.#screen = new Screen(
      (key) => this.#press(key),
      () => this.#draw(),
    );
  }

  /** Shows the screen until the user quits. Throws if the first reading fails. */
  async run(): Promise<void> {
    this.#snapshot = await this.#source.refresh();
    const quit = new Promise<void>((resolve, reject) => {
      this.#quit = resolve;
      this.#fail = reject;
    });
    this.#screen.open();
    try {
      this.#draw();
      this.#schedule();
      await quit;
    } finally {
      clearTimeout(this.#timer);
      this.#screen.close();
    }
  }

  #schedule(): void {
    this.#timer = setTimeout(async () => {
      if (!this.#isPaused) await this.#refresh();
      this.#draw();
      this.#schedule();
    }, this.#interval);
  }

  async #refresh(): Promise<void> {
    try {
      const snapshot = await this.#source.refresh();
      // What was paused meanwhile stands still.
      if (!this.#isPaused) this.#snapshot = snapshot;
      this.#error = "";
    } catch (error) {
      if (isCommandError(error)) this.#error = `${error.message}; trying again`;
      else this.#fail(error);
    }
  }

  #draw(): void {
    this.#screen.draw(
      view(this.#snapshot, {
        ...this.#screen.size,
        isColoured: !process.env["NO_COLOR"],
        order: this.#order,
        filter: this.#filter,
        isTyping: this.#isTyping,
        isPaused: this.#isPaused,
        isHelping: this.#isHelping,
        offset: this.#offset,
        error: this.#error,
        isInteractive: true,
      }),
    );
  }

  #press(key: string): void {
    if (this.#isTyping) this.#type(key);
    else if (key === "q") this.#quit();
    else this.#choose(key);
    this.#draw();
  }

  #choose(key: string): void {
    const order = Object.entries(orders).find(([, letter]) => letter === key)?.[0];
    const scroll = scrolls[key];
    if (order !== undefined) {
      this.#order = order as Order;
      this.#offset = 0;
    } else if (scroll !== undefined) {
      const last = Math.max(0, (this.#snapshot?.keys.length ?? 0) - 1);
      this.#offset = Math.min(
        last,
        Math.max(0, this.#offset + scroll(Math.max(1, this.#screen.size.lines - 12))),
      );
    } else if (key === "p" || key === " ") this.#isPaused = !this.#isPaused;
    else if (key === "/") this.#isTyping = true;
    else if (key === "?") this.#isHelping = !this.#isHelping;
    else if (key === "\x1b") {
      this.#filter = "";
      this.#isHelping = false;
    }
  }

  #type(key: string): void {
    this.#offset = 0;
    if (key === "\r" || key === "\n") this.#isTyping = false;
    else if (key === "\x1b") {
      this.#isTyping = false;
      this.#filter = "";
    } else if (key === "\x7f" || key === "\b") this.#filter = [...this.#filter].slice(0, -1).join("");
    else if (!key.startsWith("\x1b") && key >= " ") this.#filter += key;
  }
}
