import { printable } from "../printable.ts";

/** How a decision was made while a store did not respond. */
export type WithoutStore = "allow" | "deny" | "fallback";

/** A timer. Those of Node, Bun and Deno can be told that they do not keep the process alive. */
type Timer = ReturnType<typeof setInterval> & { unref?(): unknown };

/** How often an outage is looked at, in milliseconds. It has ended if there was no failure since the last look. */
const look = 1_000;

/** After how long without a look the timer is gone, in milliseconds. */
const mostUnlooked = 120_000;

/** After how many of these another line is logged. */
const looksPerLine = 60;

/** Logs the outages of one store: a line when one begins, one a minute, and one when it has ended. */
export class Outage {
  readonly #store: string;
  #timer: Timer | undefined;
  /** When it was looked at last, in milliseconds. */
  #lookedAt = 0;
  /** How many looks there were since it began. */
  #looks = 0;
  /** Decisions that were made without the store since the last line, and since it began. */
  #lately = newCounts();
  #all = newCounts();
  /** Whether the store has responded since the last failure, and whether there was one since the last look. */
  #isBack = false;
  #hasFailed = false;

  /** `store` names the store in the lines. */
  constructor(store: string) {
    this.#store = store;
  }

  /** Notes that a decision was made without the store, because of an error. */
  failed(error: unknown, how: WithoutStore): void {
    const now = Date.now();
    // A Worker drops the timers of a request that has ended.
    if (this.#timer !== undefined && now - this.#lookedAt > mostUnlooked) this.#reset();
    this.#hasFailed = true;
    this.#isBack = false;
    this.#all[how]++;
    this.#lately[how]++;
    if (this.#timer !== undefined) return;
    this.#lookedAt = now;
    this.#timer = setInterval(() => this.#look(), look) as Timer;
    this.#timer.unref?.();
    const by = how === "fallback" ? how : `onError: "${how}"`;
    this.#log(`${this.#store} failed, and hits are decided without it (${by}): ${error}`);
    this.#lately = newCounts();
  }

  /** Notes that the store responded. */
  responded(): void {
    this.#isBack = true;
  }

  #look(): void {
    this.#looks++;
    this.#lookedAt = Date.now();
    if (this.#isBack && !this.#hasFailed) this.#end();
    else if (this.#looks % looksPerLine === 0) {
      this.#log(
        `${this.#store} still fails; decided without it in the last minute: ${inWords(this.#lately)}`,
      );
      this.#lately = newCounts();
    }
    this.#hasFailed = false;
  }

  #end(): void {
    this.#log(`${this.#store} responds again; decided without it in ${this.#looks} s: ${inWords(this.#all)}`);
    this.#reset();
  }

  #reset(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#looks = 0;
    this.#all = newCounts();
    this.#lately = newCounts();
  }

  #log(line: string): void {
    console.warn(`tollgate: ${printable(line)}`);
  }
}

const newCounts = (): Record<WithoutStore, number> => ({ allow: 0, deny: 0, fallback: 0 });

const inWords = (counts: Record<WithoutStore, number>): string => {
  const words = { allow: "allowed by onError", deny: "denied by onError", fallback: "by the fallback" };
  const parts = (Object.keys(counts) as WithoutStore[]).filter((how) => counts[how] > 0);
  return parts.length === 0 ? "nothing" : parts.map((how) => `${counts[how]} ${words[how]}`).join(", ");
};

const byStore = new WeakMap<object, Outage>();

/** Returns the outages of a store: those of all limiters over it are one. */
export function outageOf(store: object, name: string): Outage {
  let outage = byStore.get(store);
  if (outage === undefined) {
    outage = new Outage(name);
    byStore.set(store, outage);
  }
  return outage;
}
